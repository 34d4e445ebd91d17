"""The page of the five texts: complete, nothing twice; each command runs here, where a page prints it, or in tests/examples."""

import re
from functools import cache
from pathlib import Path

import pytest

from crossgraft.bench import run_study
from crossgraft.tune.presets import PRESETS
from docs.test_documentation import PAGES, REPOSITORY, commands
from support.here import Here

PAGE = REPOSITORY / "docs" / "explanation" / "the-five-texts.md"
NOT_HERE = ("drawing", "explained only", "not here yet: ", "not typed: ", "from Python: ")


def numbers(kind, names):
    return {f"{kind} {name}" for name in names}


def up_to(last, chapter=""):
    return [f"{chapter}{number}" for number in range(1, last + 1)]


TEXTS = {
    "RepSim": numbers("Eq.", up_to(26)) | numbers("Table", up_to(7)) | numbers("Fig.", up_to(6)),
    "ITM": numbers("Eq.", up_to(12)) | numbers("Table", up_to(4)) | numbers("Fig.", up_to(7)),
    "CoPA": {
        "Eq. 1",
        "Eq. 3",
        "Eq. 4",
        "Gap",
        "Panels",
        "Theorem 3.1",
        "Theorem 3.2",
        "Theorem 5.1",
        "Algorithm 1",
        "Table 1",
        "Table 2",
    },
    "SIM": numbers("Eq.", up_to(5)) | numbers("Table", up_to(13)) | numbers("Fig.", up_to(5)) | {"Algorithm 1"},
    "Thesis": numbers("Eq.", [*up_to(2, "3."), *up_to(2, "4."), *up_to(2, "5."), *up_to(8, "6.")])
    | numbers("Table", [*up_to(3, "3."), "4.1", *up_to(5, "6.")])
    | numbers("Fig.", ["1.1", "2.1", "2.2", *up_to(12, "3."), *up_to(4, "4."), *up_to(4, "5."), *up_to(6, "6.")]),
}
"""What each text numbers, and for CoPA, a talk, what it names."""


def every(number):
    """`Fig. 3.3, 3.7–3.9` is four figures, and `Gap` one thing."""
    kind, _, listed = number.partition(" ")
    if not listed:
        return [number]
    single = []
    for part in listed.split(", "):
        first, _, last = part.partition("–")
        chapter = first.rpartition(".")[0] and first.rpartition(".")[0] + "."
        places = range(int(first.removeprefix(chapter)), int((last or first).removeprefix(chapter)) + 1)
        single += [f"{kind} {chapter}{place}" for place in places]
    return single


@cache
def sections():
    text = PAGE.read_text(encoding="utf-8")
    parts = re.split(r"(?m)^## ", text)[1:]
    return {
        re.split(r"\W", part)[0]: [row.strip("| ").split(" | ") for row in re.findall(r"(?m)^\| .*", part)[1:]] for part in parts
    }


ROWS = [pytest.param(row, id=f"{text} {row[0]}") for text, rows in sections().items() for row in rows]


@pytest.mark.parametrize("text", TEXTS)
def test_each_number_of_a_text_has_one_row(text):
    listed = [number for row in sections()[text] for number in every(row[0])]
    assert sorted(listed) == sorted(TEXTS[text])


def test_each_preset_has_one_row():
    assert [f"`{name}`" for name, _ in PRESETS if PRESETS.origin(name) == "crossgraft"] == [
        row[0] for row in sections()["Recipes"]
    ]


@pytest.mark.parametrize("row", ROWS)
def test_a_row_says_what_to_type_or_why_there_is_nothing(row):
    _, what, typed, read = row
    assert what
    if typed.startswith(("`crossgraft ", "`python examples/")):
        assert "](" in read
    else:
        assert typed.startswith(NOT_HERE)


RUN_ELSEWHERE = {
    "studies/copa-table-1.yaml": "unit/bench/test_protocols.py",
    "studies/domains-digits.yaml": "examples/test_pages.py",
    "studies/repsim-table-4-peft.yaml": "unit/bench/test_protocols.py",
    "studies/sources.yaml": "unit/bench/test_page_studies.py",
}
"""Studies whose smoke another test runs, which looks at more of what it gives."""
STUDIES = sorted(set(re.findall(r"`crossgraft bench (\S+)`", PAGE.read_text("utf-8"))))


@pytest.mark.parametrize("study", RUN_ELSEWHERE)
def test_a_study_that_is_left_out_is_run_elsewhere(study):
    text = (REPOSITORY / "tests" / RUN_ELSEWHERE[study]).read_text(encoding="utf-8")
    assert study in STUDIES
    assert f'"{study}", out' in text or f'"{Path(study).name}", out' in text or f'["{Path(study).stem}"' in text


@pytest.mark.slow
@pytest.mark.parametrize("study", [study for study in STUDIES if study not in RUN_ELSEWHERE])
def test_the_studies_of_the_page_run_small(study, tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    record = run_study(study, out=tmp_path / "out", smoke=True, executor=Here()).record
    assert record.num_done > 0 and record.failures == []


def test_other_commands_are_printed_by_a_page_that_is_run():
    """In a console block; ``test_documentation`` runs those of every page, small."""
    typed = {command for rows in sections().values() for row in rows for command in re.findall(r"`(crossgraft [^`]+)`", row[2])}
    run = {command for page in PAGES for command in commands(page)}
    assert sorted(command for command in typed - run if not command.startswith("crossgraft bench ")) == []


def test_examples_of_the_page_run_small_in_their_tests():
    """By the fixture ``smoke`` of tests/examples, with the two arguments that are printed and ``--smoke``."""
    typed = {
        command for rows in sections().values() for row in rows for command in re.findall(r"`python (examples/[^`]+)`", row[2])
    }
    tests = "\n".join(file.read_text("utf-8") for file in (REPOSITORY / "tests" / "examples").glob("test_*.py"))
    run = {f"examples/sim/{name}.py FILES OUT" for name in re.findall(r"(?<!def )\bsmoke\(\"(\w+)\"", tests)}
    assert typed
    assert sorted(typed - run) == []
    assert all((REPOSITORY / command.split()[0]).is_file() for command in typed)
