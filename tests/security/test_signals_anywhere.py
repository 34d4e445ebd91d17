"""A signal at any point ends a command with its code, whatever becomes of its exception; the same command goes on from there."""

import os
import random
import signal

import pandas as pd
import pytest

from crossgraft import stopping
from crossgraft.cli import main as cli
from support.workspace import crossgraft as crossgraft
from support.workspace import workspace as workspace

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="signals of POSIX")

CODE = ("--code", "tiny_models.py", "--device", "cpu", "--workers", "1")
COMMANDS = {
    "check": (("check", "images", "--out", "out"), "report.html"),
    "edit": (("edit", "images", "out", "--with", "tag"), "labels.csv"),
    "rank": (("rank", "images", "--models", "zoo.yaml", *CODE, "--no-images", "--out", "out"), "scores.csv"),
    "tune": (
        ("tune", "images", "--model", "zoo.yaml:narrow", *CODE, "--method", "linear", "--epochs", "2", "--out", "out"),
        "split.json",
    ),
}
NUMBERS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class OtherError(Exception):
    """What an import that was interrupted raises."""


def strike(how, number):
    """What may become of a signal: the handler's exception, another error, or nothing at all."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        if how == "raised":
            raise
        if how == "other":
            raise OtherError from None


@pytest.fixture(autouse=True)
def handlers():
    before = {number: signal.getsignal(number) for number in NUMBERS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    stopping.ask_to_end(None)


def run(words):
    for number in NUMBERS:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    with pytest.raises(SystemExit) as ended:
        cli.run(list(words))
    return ended.value.code


@pytest.mark.parametrize("how", ["raised", "other", "lost"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_a_random_write(name, how, workspace, monkeypatch, capsys):
    words, kept = COMMANDS[name]
    draw = random.Random(f"{name} {how}")
    fsync = os.fsync
    for number in NUMBERS:
        left = iter(range(draw.randrange(1, 7)))

        def write(descriptor, left=left, number=number):
            if next(left, None) is None and stopping.asked_to_end() is None:
                strike(how, number)
            return fsync(descriptor)

        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", write)
            code = run(words)
        said = capsys.readouterr().err
        # A command that was done before has fewer writes.
        assert code == 128 + number or (code == 0 and stopping.asked_to_end() is None), said
        assert "Internal error" not in said
        if code:
            assert "Interrupted. What was finished is kept" in said
    assert run(words) == 0, capsys.readouterr().err
    again = numbers(workspace / "out" / kept)
    assert run(["fresh" if word == "out" else word for word in words]) == 0
    assert again == numbers(workspace / "fresh" / kept)


def numbers(file):
    """What is in a file of a run but for time and memory, which are others in every run."""
    if file.suffix == ".csv":
        table = pd.read_csv(file)
        return table[[name for name in table if name not in ("seconds", "peak_bytes")]].to_csv()
    return file.read_bytes() if file.suffix == ".json" else file.is_file()


@pytest.mark.parametrize("how", ["raised", "other", "lost"])
def test_a_signal_while_nothing_is_written(how, monkeypatch, capsys):
    """As while a package is imported, for a command without stages."""
    monkeypatch.setattr(cli, "show", lambda _: strike(how, signal.SIGTERM))
    assert run(["--version"]) == 128 + signal.SIGTERM
    assert "Interrupted" in capsys.readouterr().err


def test_a_signal_after_the_command_has_ended_changes_nothing(monkeypatch):
    monkeypatch.setattr(cli, "drop_unread", lambda *_: signal.raise_signal(signal.SIGTERM))
    assert run(["--version"]) == 0


def test_a_second_signal_while_the_first_is_said(monkeypatch):
    monkeypatch.setattr(cli, "show", lambda _: strike("raised", signal.SIGTERM))
    monkeypatch.setattr(cli, "complain", lambda *_, **__: strike("raised", signal.SIGINT))
    assert run(["--version"]) == 128 + signal.SIGTERM
