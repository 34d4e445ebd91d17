import json
import re
from pathlib import Path

import pytest

from crossgraft.cli.main import main
from crossgraft.rank.published.tables import PUBLISHED, TABLES_OF

PAGE = Path(__file__).parents[2] / "docs" / "results" / "benchmark.md"
OTHER_TITLES = (
    *("In short", "As a cold start, beside ImageNet top-1", "As a cold start, beside the mean rank in other publications"),
    *("With the other targets known, beside ImageNet top-1", "All tables together", "trained_auc", "trained_accuracy"),
)
"""Headings that are no published table; the last two are our own trainings."""


def test_the_terminal_shows_tables_and_conclusions(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["rank", "--published", "thesis"]) == 0
    text = capsys.readouterr().out
    assert "75 of 75 printed cells" in text and "77 of 77 printed cells" in text
    assert " ".join(text.split()).count("Nothing beats the static prior") == 2
    assert all(len(line) <= 100 for line in text.splitlines())
    assert (tmp_path / "runs" / "rank-thesis" / "report.html").is_file()


@pytest.mark.parametrize(("name", "errata"), [("thesis-datasets", True), ("medmnistplus_auc", False)])
def test_one_table_of_several_by_the_name_that_pages_use(tmp_path, capsys, name, errata):
    assert main(["rank", "--published", name, "--out", str(tmp_path / "run"), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [record["name"], *(scenario["name"] for scenario in record["scenarios"])] == [name, name]
    slips = {slip["where"]: (slip["printed"], slip["recomputed"]) for slip in record["slips"]}
    assert bool(slips) == errata
    if errata:
        printed, recomputed = slips["Text below Table 6.2, critical difference"]
        assert printed.startswith("2.792 (q of 8 methods") and recomputed.startswith("2.716 (q of 7 methods")


def test_every_table_of_the_page_has_a_name_that_is_known():
    titles = re.findall(r"^## (.*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    tables = [title for title in titles if title not in OTHER_TITLES]
    assert set(TABLES_OF) < set(tables) <= {*PUBLISHED, *TABLES_OF}


def test_json_is_the_record(tmp_path, capsys):
    assert main(["rank", "--published", "itm", "--out", str(tmp_path / "run"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "published"


def test_flags_of_images_are_refused(capsys):
    assert main(["rank", "digits", "--published", "itm"]) == 2
    assert "cannot be used with DATA" in capsys.readouterr().err
    assert main(["rank", "--published", "itm", "--seed", "1"]) == 2
    assert "cannot be used with --seed" in capsys.readouterr().err


def test_rank_without_images_says_what_to_do(capsys):
    assert main(["rank"]) == 2
    assert "Name the images to rank for" in capsys.readouterr().err
