"""Help and results as a terminal of 80 and of 60 columns shows them, kept as text files beside this one.

``CROSSGRAFT_SNAPSHOTS=write python -m pytest tests/cli/test_snapshots.py`` writes them again, and ``git diff`` shows what
became of them, to be read whole.
"""

import os
from pathlib import Path

import pytest

from crossgraft.cli.main import main
from crossgraft.report.terminal import record_as_text
from support.tuning_records import kept_record, tuning_record
from unit.report.example_runs import data_check_record, ranking_record

FOLDER = Path(__file__).parent / "snapshots"
HELP = {"help": ["--help"], "tune-help": ["tune", "--help"], "rank-help": ["rank", "--help"]}
RESULTS = {"check": data_check_record, "rank": ranking_record, "tune": tuning_record, "tune-kept": kept_record}


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
    assert text == path.read_text(encoding="utf-8"), (
        f"{path.name} is out of date; the top of this file says how to write it."
    )


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
