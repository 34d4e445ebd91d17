"""A folder to work in, with coloured squares as images and a zoo of two tiny networks; fixtures that a conftest imports."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from crossgraft.cli.main import main
from crossgraft.options.command import COMMANDS
from support.tiny import make_workspace


@dataclass
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    """The current folder: `images/` (two classes of 12), `zoo.yaml`, `tiny_models.py`, weights."""
    import sys

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "tiny_models", raising=False)
    make_workspace(tmp_path)
    yield tmp_path
    sys.modules.pop("tiny_models", None)


@pytest.fixture
def crossgraft(capsys):
    """Run a command in this process: `crossgraft("rank", "images")`; with everything that it can print, or `in_brief`."""

    def run(*arguments, in_brief=False) -> Outcome:
        capsys.readouterr()
        words = [str(argument) for argument in arguments]
        if not in_brief and words and (command := COMMANDS.find(words[0])) is not None and "verbose" in command.flags:
            words.insert(1, "--verbose")
        code = main(words)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def runs_made(tmp_path_factory) -> tuple[Path, dict[tuple[str, ...], Outcome]]:
    """Copies of run directories, and what their commands said; `run_once` fills them."""
    return tmp_path_factory.mktemp("runs_made"), {}


@pytest.fixture
def run_once(workspace, crossgraft, runs_made):
    """A command that many tests begin with: every workspace is the same, so later ones get a copy of the run directory."""
    kept, said = runs_made

    def run(*arguments: str, out: str) -> Outcome:
        key = (*arguments, out)
        if key in said:
            shutil.copytree(kept / str(list(said).index(key)), workspace / out)
        else:
            outcome = crossgraft(*arguments, "--out", out)
            assert outcome.code == 0, outcome.err
            shutil.copytree(workspace / out, kept / str(len(said)))
            said[key] = outcome
        return said[key]

    return run
