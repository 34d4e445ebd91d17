"""Every row of docs/errors.md: the case is made, the command is run, exit code and message are compared."""

import re
from pathlib import Path

import pytest

from crossgraft.running.run_directory import open_run
from support.documented_errors import PLAIN, data, models, runs, tuning

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"
CASES = {name: each for module in (data, models, runs, tuning) for name, each in vars(module).items()}


def documented():
    """Case → (exit code, message) from the table of the page."""
    rows = re.findall(r"^\| ([a-z0-9_]+) \| (\d+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {case: (int(code), message.strip().replace("\\|", "|")) for case, code, message in rows}


def matches(message, text):
    """Does the documented message, with … for anything, occur in what was printed?"""
    pattern = ".*".join(re.escape(part.strip()) for part in message.split("…"))
    return re.search(pattern, " ".join(text.split())) is not None


def test_every_documented_case_is_made_here():
    assert set(documented()) - {"two_runs_in_one_directory"} <= set(CASES)
    assert len(documented()) >= 20


@pytest.mark.parametrize("case", [case for case in documented() if case != "two_runs_in_one_directory"])
def test_what_is_said(case, workspace, crossgraft, monkeypatch):
    code, message = documented()[case]
    arguments = CASES[case](workspace, monkeypatch)
    outcome = crossgraft(*arguments)
    assert outcome.code == code, outcome.err
    reports = [path.read_text(encoding="utf-8") for path in workspace.rglob("report.json")] if code == 0 else []
    said = " ".join([outcome.err, *reports])
    assert matches(message, said), f"documented: {message}\nsaid: {said}"
    assert "Traceback" not in outcome.err
    if code not in (0, 6) and arguments[0] != "check":  # what a check finds is its result, and so is a part of a sweep
        assert outcome.out == ""
    leftovers = [path for path in workspace.rglob("*") if re.search(r"\.tmp|\.partial|^\..*\.json\.", path.name)]
    assert leftovers == []


def test_two_runs_in_one_directory(workspace, crossgraft):
    code, message = documented()["two_runs_in_one_directory"]
    with open_run(workspace / "run", command="rank", command_line="", config={}, seed=0):
        outcome = crossgraft(*PLAIN)
    assert outcome.code == code
    assert matches(message, outcome.err)


def test_a_wrong_message_would_be_noticed():
    assert matches("No such folder: … Did you mean images?", "Error: No such folder: imges. Did you mean images?")
    assert not matches("No such folder: … Did you mean pictures?", "Error: No such folder: imges. Did you mean images?")


def test_debug_shows_the_traceback(workspace, crossgraft):
    outcome = crossgraft("rank", "nothing", "--models", "zoo.yaml", "--code", "tiny_models.py", "--debug")
    assert "Traceback" in outcome.err
    assert outcome.code == 3
