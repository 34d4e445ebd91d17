"""From words to values: cyclopts reads what the options classes say; errors are those of crossgraft."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

from cyclopts import (
    App,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    Token,
    UnknownOptionError,
    UnusedCliTokensError,
)

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._option import Option
from crossgraft.options._values import value_of
from crossgraft.options.command import Command, Input, Shell, typed_as
from crossgraft.options.empty import refuse_empty


def parse(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """The inputs and options that were typed, by name; defaults are left to the verb.

    Args:
        command: Whose words they are.
        words: What follows its name.

    Raises:
        UsageError: A flag is not known, a value is missing or cannot be, or there is one too many.
    """
    try:
        _, bound, _ = _app_of(command).parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        _refuse(command, error)
    return dict(bound.arguments)


def completion_script(commands: Iterable[Command], shell: Shell) -> str:
    """What a shell reads to complete all commands and their flags."""
    app = App(name="crossgraft", help_flags=("--help", "--help-all"), version_flags=())
    for command in commands:
        app.command(_app_of(command))
    return app.generate_completion(shell=shell)


def _app_of(command: Command) -> App:
    def call(*_: Any, **__: Any) -> None:
        """What cyclopts reads the words for; ``Command.run`` is called instead."""

    parameters = [
        *map(_input_parameter, command.inputs),
        *(_flag_parameter(each, list(_all_flags(command))) for each in command.flags.values()),
    ]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    app = App(name=command.name, help=command.summary, help_flags=(), version_flags=())
    app.default(call)
    return app


def _input_parameter(each: Input) -> inspect.Parameter:
    one = partial(_input_value, each)
    said = Parameter(help=each.help, converter=_converter(each.metavar, one, repeats=each.repeats), negative=())
    kind: Any = list[each.type] if each.repeats else each.type
    return inspect.Parameter(
        each.name,
        inspect.Parameter.POSITIONAL_ONLY,
        default=inspect.Parameter.empty if each.is_required else None,
        annotation=Annotated[kind if each.is_required else kind | None, said],
    )


def _flag_parameter(option: Option, flags: Sequence[str]) -> inspect.Parameter:
    kind = typed_as(option)
    said: dict[str, Any] = {"name": option.flags, "help": option.about.help, "allow_repeating": True}
    if kind is bool:
        said["negative"] = option.off_flag or ()
    else:
        one = partial(_path, option.flag) if kind is Path else partial(value_of, option, shown=option.flag, kind=kind)
        convert = _converter(option.flag, one, repeats=option.about.repeats, flags=flags)
        said |= {"negative": (), "allow_leading_hyphen": True, "converter": convert}
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,  # only what is typed is passed on, but the type must allow for it
        annotation=Annotated[(list[kind] if option.about.repeats else kind) | None, Parameter(**said)],
    )


def _path(shown: str, word: str) -> Path:
    refuse_empty(shown, word)
    return Path(word)


def _input_value(given: Input, word: str) -> object:
    refuse_empty(given.metavar, word)
    if get_origin(given.type) is Literal and word not in get_args(given.type):
        raise UnknownNameError(f"value of {given.metavar}", word, get_args(given.type))
    return Path(word) if given.type is Path else word


def _converter(
    shown: str, one: Callable[[str], object], *, repeats: bool, flags: Sequence[str] = ()
) -> Callable[[object, Sequence[Token]], object]:
    """What makes values of words, ``one`` of each."""

    def convert(_: object, tokens: Sequence[Token]) -> object:
        for token in tokens:
            if token.value in flags:
                raise UsageError(f"{shown} needs a value, but {token.value} follows.")
        values = [one(token.value) for token in tokens]
        return values if repeats else values[-1]

    return convert


def _all_flags(command: Command) -> Iterable[str]:
    for each in command.flags.values():
        yield from each.flags
        if each.off_flag is not None:
            yield each.off_flag


def _refuse(command: Command, error: CycloptsError) -> NoReturn:
    """Raise what cyclopts says about the words as an error of crossgraft."""
    hint = f"Try: crossgraft {command.name} --help."
    if isinstance(error, UnknownOptionError):
        flag = error.token.keyword or error.token.value
        raise UnknownNameError("option", flag, _all_flags(command), hint=hint) from error
    if isinstance(error.__cause__, UsageError):
        raise UsageError(f"{error.__cause__} {hint}") from error
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        said = f"Unexpected argument: {error.unused_tokens[0]}."
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.keyword or error.argument.name
        said = f"{name} needs a value." if name.startswith("-") else f"Missing argument {name}."
    else:
        said = " ".join(str(error).split())
    raise UsageError(f"{said} {hint}") from error
