"""Help and results as a terminal of 80, 60 or 40 columns shows them, kept as text files beside this one.

``CROSSGRAFT_SNAPSHOTS=write python -m pytest tests/cli/test_snapshots.py`` writes them again, and ``git diff`` shows what
became of them, to be read whole.
"""

import os
from pathlib import Path

import pytest

from crossgraft.cli.main import main
from crossgraft.report.terminal import record_as_text
from support.audit_records import audit_record
from support.comparison_records import comparison_record
from support.fewshot_records import fewshot_record
from support.model_comparison_records import model_comparison_record
from support.selection_records import selection_record
from support.tuning_records import kept_record, tuning_record
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


@pytest.mark.parametrize("name", NARROW)
def test_results_on_40_columns(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = record_as_text(NARROW[name]()) + "\n"
    too_long = [line for line in text.splitlines() if len(line) > 40]
    assert [line for line in too_long if not line.startswith(("  crossgraft ", "Next, "))] == []  # these are copied
    compare(f"{name}-40", text)
