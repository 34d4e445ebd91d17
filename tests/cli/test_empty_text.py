"""Empty text is refused in every place, with its name: a variable of a shell that is not set must mean nothing."""

import inspect
from typing import Literal, get_args, get_origin

import pytest

import crossgraft as package
from crossgraft.cli.call import parse
from crossgraft.errors import UsageError
from crossgraft.options._option import options_of
from crossgraft.options.command import COMMANDS, typed_as

VERBS = {name: each for name in package.__all__ if hasattr(each := getattr(package, name), "options") and callable(each)}


def word_for(each):
    """One that an input takes."""
    return get_args(each.type)[0] if get_origin(each.type) is Literal else "x"


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_flag_and_input_of(name):
    command = COMMANDS.get(name)
    words = [word_for(each) for each in command.inputs if each.is_required]
    for option in command.flags.values():
        if typed_as(option) is bool:
            continue
        text = "" if option.about.is_separator else " "
        for typed in ([option.flag, ""], [f"{option.flags[-1]}={text}"]):
            with pytest.raises(UsageError, match=f"{option.flag} is empty"):
                parse(command, [*words, *typed])
    for place in range(len(command.inputs)):
        with pytest.raises(UsageError, match=f"{command.inputs[place].metavar} is empty"):
            parse(command, [*map(word_for, command.inputs[:place]), ""])


@pytest.mark.parametrize("name", VERBS)
def test_every_argument_of(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    parameters = inspect.signature(VERBS[name]).parameters.values()
    values = {each.name: "x" for each in parameters if each.kind is not each.KEYWORD_ONLY or each.default is each.empty}
    known = options_of(VERBS[name].options)
    for each in parameters:
        blank = each.name in known and known[each.name].about.is_separator
        for value in ("", [""], ("a", ""), *[" ", ["a", "  "]] * (not blank)):
            if each.name != "reporter":
                with pytest.raises(UsageError, match=f"{each.name} is empty"):
                    VERBS[name](**{**values, each.name: value})
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_options(workspace, crossgraft):
    for key in ("out", "group_column", "models"):
        (workspace / "c.yaml").write_text(f"{key}: ''\n")
        done = crossgraft("rank", "images", "--config", "c.yaml")
        assert done.code == 2
        assert f"{key} in c.yaml is empty" in done.err


def test_other_ways_into_python(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for attempt in (
        lambda: package.open_dataset(""),
        lambda: package.write_report(""),
        lambda: package.write_report([""], out="x.html"),
        lambda: package.write_report("run", out=" "),
    ):
        with pytest.raises(UsageError, match="empty"):
            attempt()
