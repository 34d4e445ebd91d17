"""Empty text is refused in every place, with its name: a variable of a shell that is not set must mean nothing."""

import inspect

import pytest

import crossgraft as package
from crossgraft.cli.command import typed_as
from crossgraft.cli.commands import COMMANDS
from crossgraft.cli.parsing import parse
from crossgraft.errors import UsageError
from crossgraft.options import options_of

FLAGS = [
    (name, flag)
    for name, command in COMMANDS
    for each in command.flags.values()
    if typed_as(each) is not bool
    for flag in each.flags
]
INPUTS = [(name, each.name) for name, command in COMMANDS for each in command.inputs]
VERBS = {name: each for name in package.__all__ if hasattr(each := getattr(package, name), "options") and callable(each)}
ARGUMENTS = [
    (name, argument.name)
    for name, function in VERBS.items()
    for argument in inspect.signature(function).parameters.values()
    if argument.name != "reporter"
]


@pytest.mark.parametrize("text", ["", "  "])
@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_a_flag(name, flag, text):
    if flag == "--label-separator" and text:
        pytest.skip("blanks can stand between labels")
    command = COMMANDS.get(name)
    needed = ["x"] * sum(each.is_required for each in command.inputs)
    for words in ([flag, text], [f"{flag}={text}"]):
        with pytest.raises(UsageError, match=rf"{flag} is empty|value of {flag}"):
            parse(command, [*needed, *words])


@pytest.mark.parametrize(("name", "argument"), INPUTS)
def test_what_is_typed_without_a_flag(name, argument):
    command = COMMANDS.get(name)
    words = ["" if each.name == argument else "x" for each in command.inputs]
    with pytest.raises(UsageError, match="is empty|value of|needs"):
        parse(command, words)


@pytest.mark.parametrize("value", ["", " ", [""], ["a", ""], ("a", "  ")])
@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_an_argument_of_python(name, argument, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if argument == "label_separator" and value in (" ", ("a", "  ")):
        pytest.skip("blanks can stand between labels")
    function = VERBS[name]
    values = {
        each.name: "x"
        for each in inspect.signature(function).parameters.values()
        if each.kind is not each.KEYWORD_ONLY or each.default is each.empty
    }
    with pytest.raises(UsageError, match=f"{argument} is empty|{argument}"):
        function(**{**values, argument: value})
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
