"""Help and results as a terminal of 80, 60 or 40 columns shows them, kept as text files beside this one.

``CROSSGRAFT_SNAPSHOTS=write python -m pytest tests/cli/test_snapshots.py`` writes them again, and ``git diff`` shows what
became of them, to be read whole.
"""

import math
import os
import re
import shlex
from pathlib import Path

import pytest

from crossgraft.cli.main import main
from crossgraft.report.blocks import Verdict
from crossgraft.report.source import Source
from crossgraft.report.terminal import MOST_LINES, in_brief, record_as_text, verdict_of
from support.audit_records import audit_record
from support.comparison_records import comparison_record
from support.fewshot_records import fewshot_record
from support.model_comparison_records import model_comparison_record
from support.selection_records import selection_record
from support.tuning_records import kept_record, prediction_record, tuning_record
from unit.report.example_runs import data_check_record, ranking_record

FOLDER = Path(__file__).parent / "snapshots"
HELP = {"help": ["--help"], "tune-help": ["tune", "--help"], "rank-help": ["rank", "--help"]}
RANKING = ranking_record()
RESULTS = {"check": data_check_record, "rank": ranking_record, "tune": tuning_record, "tune-kept": kept_record}

NARROW = {
    **RESULTS,
    "select": selection_record,
    "compare": lambda: model_comparison_record(RANKING.dataset),
    "tune-compare": comparison_record,
    "audit": lambda: audit_record(RANKING.dataset, RANKING.models[0]),
    "fewshot": lambda: fewshot_record(RANKING.dataset, RANKING.models[0]),
}

IN_BRIEF = {
    "check": (data_check_record, "crossgraft check 'my images' --group-column patient --out 'runs/a check'"),
    "rank": (ranking_record, "crossgraft rank 'my images' --models zoo.yaml --group-column patient --out 'runs/a ranking'"),
    "tune": (tuning_record, "crossgraft tune 'my images' --model mobilenetv2_100 --group-column patient --out 'runs/a run'"),
    "predict": (prediction_record, "crossgraft predict 'runs/a run' 'new images' --out 'runs/a prediction'"),
    "compare": (NARROW["compare"], "crossgraft compare 'runs/a run' 'runs/b run' --data 'my images' --out runs/compared"),
    "audit": (NARROW["audit"], "crossgraft audit 'runs/a run' --data 'my images' --confounder tag --out 'runs/an audit'"),
    "fewshot": (NARROW["fewshot"], "crossgraft fewshot 'my images' --model resnet18 --heads copa,ncc --out 'runs/few shot'"),
    "select": (selection_record, "crossgraft select 'my images' --models zoo.yaml --budget 30min --out 'runs/a selection'"),
    "tune-compare": (comparison_record, "crossgraft tune 'my images' --model a --compare full,linear --out 'runs/two ways'"),
}
"""The commands that people use, each with what was typed for it."""


@pytest.fixture(params=[80, 60])
def columns(request, monkeypatch):
    """The width of the terminal."""
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


def compare(name, text):
    path = FOLDER / f"{name}.txt"
    if os.environ.get("CROSSGRAFT_SNAPSHOTS") == "write":
        FOLDER.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    assert text == path.read_text(encoding="utf-8"), f"{path.name} is out of date; the top of this file says how to write it."


@pytest.mark.parametrize("name", HELP)
def test_help(name, columns, capsys):
    assert main(HELP[name]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= columns
    compare(f"{name}-{columns}", text)


@pytest.mark.parametrize("name", RESULTS)
def test_results(name, columns):
    text = record_as_text(RESULTS[name]()) + "\n"
    assert max(map(len, text.splitlines())) <= columns
    compare(f"{name}-{columns}", text)


def height(text, columns):
    """Lines on a terminal, which breaks a command that is to be copied."""
    return sum(max(1, math.ceil(len(line) / columns)) for line in text.splitlines())


@pytest.mark.parametrize("name", IN_BRIEF)
def test_a_terminal_gets_ten_lines(name, columns):
    record, line = IN_BRIEF[name]
    verdict = verdict_of(Source(record(), command_line=line))
    out = shlex.split(line)[-1]
    text = in_brief(verdict, {"Model": f"{out}/model", "Report": f"{out}/report.html"}) + "\n"
    assert height(text, columns) <= MOST_LINES
    assert verdict.following is None or f"  {verdict.following}\n" in text
    assert text.splitlines()[-2].startswith("Report: ")
    sentences = [sentence for sentence in re.split(r"(?<=[.:]) ", " ".join(text.split())) if len(sentence) > 20]
    assert len({*sentences}) == len(sentences)
    compare(f"brief-{name}-{columns}", text)


def test_what_does_not_fit_is_cut_at_the_end_of_a_sentence_and_the_command_stays_whole(columns):
    following = "crossgraft tune " + "'a long folder/of images' " * 4
    caveat = "The worst of all comes first. " + "What is said then takes many words and many lines. " * 4
    verdict = Verdict("An answer that is long. " * 12, caveat=caveat, following=following, purpose="to go on")
    lines = in_brief(verdict, {"Report": "report.html"}).splitlines()
    assert height("\n".join(lines), columns) <= MOST_LINES
    assert f"  {following}" in lines
    (first,) = [line for line in lines if line.startswith("Caveat: ")]
    assert first.startswith("Caveat: The worst of all comes first.")
    assert not any(line.endswith(" …") for line in lines)


@pytest.mark.parametrize("name", NARROW)
def test_results_on_40_columns(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = record_as_text(NARROW[name]()) + "\n"
    too_long = [line for line in text.splitlines() if len(line) > 40]
    assert [line for line in too_long if not line.startswith(("  crossgraft ", "Next, "))] == []  # these are copied
    compare(f"{name}-40", text)
