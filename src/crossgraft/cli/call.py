"""One command as it was typed, and what all commands do with that."""

from __future__ import annotations

import gc
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeVar, get_args, get_origin

from cyclopts import App, CycloptsError, MissingArgumentError, Parameter, Token, UnknownOptionError, UnusedCliTokensError

from crossgraft.cli.output import print_json, show
from crossgraft.errors import OtherRunError, UnknownNameError, UsageError
from crossgraft.options._option import Option, Options, options_of
from crossgraft.options._values import refuse_empty, value_of, with_what_they_stand_for
from crossgraft.options.command import Command, Input, Shell, Typed, typed_as
from crossgraft.options.running import Output

if TYPE_CHECKING:
    from crossgraft.progress import Reporter
    from crossgraft.records.base import Record
    from crossgraft.result import Result


def parse(command: Command, words: Sequence[str]) -> dict[str, Any]:
    """The inputs and options that were typed, by name; defaults are left to the verb.

    Args:
        command: Whose words they are.
        words: What follows its name.

    Raises:
        UsageError: A flag is not known, a value is missing or cannot be, or there is one too many.
    """
    try:
        _, bound, _ = _reader_of(command).parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        _refuse(command, error)
    return dict(bound.arguments)


def completion_script(commands: Iterable[Command], shell: Shell) -> str:
    """What a shell reads to complete all commands and their flags."""
    app = App(name="crossgraft", help_flags=("--help", "--help-all"), version_flags=())
    for command in commands:
        app.command(_app_of(command))
    return app.generate_completion(shell=shell)


@cache
def _reader_of(command: Command) -> App:
    """Kept: a process that runs many commands builds it once."""
    return _app_of(command)


def _app_of(command: Command) -> App:
    def call(*_: Any, **__: Any) -> None:
        """What cyclopts reads the words for; ``Command.run`` is called instead."""

    flags = list(_all_flags(command))
    parameters = [*map(_input_parameter, command.inputs), *(_flag_parameter(option, flags) for option in command.flags.values())]
    vars(call)["__signature__"] = inspect.Signature(parameters)
    app = App(name=command.name, help=command.summary, help_flags=(), version_flags=())
    app.default(call)
    return app


def _input_parameter(input_: Input) -> inspect.Parameter:
    converter = _converter(input_.metavar, partial(_input_value, input_), repeats=input_.repeats)
    parameter = Parameter(help=input_.help, converter=converter, negative=())
    kind: Any = list[input_.type] if input_.repeats else input_.type
    return inspect.Parameter(
        input_.name,
        inspect.Parameter.POSITIONAL_ONLY,
        default=inspect.Parameter.empty if input_.is_required else None,
        annotation=Annotated[kind if input_.is_required else kind | None, parameter],
    )


def _flag_parameter(option: Option, flags: Sequence[str]) -> inspect.Parameter:
    kind = typed_as(option)
    keywords: dict[str, Any] = {"name": option.flags, "help": option.about.help, "allow_repeating": True}
    if kind is bool:
        keywords["negative"] = option.off_flag or ()
    else:
        convert_one = partial(_path, option.flag) if kind is Path else partial(value_of, option, shown=option.flag, kind=kind)
        convert = _converter(option.flag, convert_one, repeats=option.about.repeats, flags=flags)
        keywords |= {"negative": (), "allow_leading_hyphen": True, "converter": convert}
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,  # only what is typed is passed on, but the type must allow for it
        annotation=Annotated[(list[kind] if option.about.repeats else kind) | None, Parameter(**keywords)],
    )


def _path(shown: str, word: str) -> Path:
    refuse_empty(shown, word)
    return Path(word)


def _input_value(input_: Input, word: str) -> object:
    refuse_empty(input_.metavar, word)
    if get_origin(input_.type) is Literal and word not in get_args(input_.type):
        raise UnknownNameError(f"value of {input_.metavar}", word, get_args(input_.type))
    return Path(word) if input_.type is Path else word


def _converter(
    shown: str, convert_one: Callable[[str], object], *, repeats: bool, flags: Sequence[str] = ()
) -> Callable[[object, Sequence[Token]], object]:
    """What makes values of words, ``one`` of each."""

    def convert(_: object, tokens: Sequence[Token]) -> object:
        for token in tokens:
            if token.value in flags:
                raise UsageError(f"{shown} needs a value, but {token.value} follows.")
        values = [convert_one(token.value) for token in tokens]
        return values if repeats else values[-1]

    return convert


def _all_flags(command: Command) -> Iterable[str]:
    for option in command.flags.values():
        yield from option.flags
        if option.off_flag is not None:
            yield option.off_flag


def _refuse(command: Command, error: CycloptsError) -> NoReturn:
    """Raise what cyclopts says about the words as an error of crossgraft."""
    hint = f"Try: crossgraft {command.name} --help."
    if isinstance(error, UnknownOptionError):
        flag = error.token.keyword or error.token.value
        raise UnknownNameError("option", flag, _all_flags(command), hint=hint) from error
    if isinstance(error.__cause__, UsageError):
        raise UsageError(f"{error.__cause__} {hint}") from error
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        problem = f"Unexpected argument: {error.unused_tokens[0]}."
    elif isinstance(error, MissingArgumentError) and error.argument is not None:
        name = error.keyword or error.argument.name
        problem = f"{name} needs a value." if name.startswith("-") else f"Missing argument {name}."
    else:
        problem = " ".join(str(error).split())
    raise UsageError(f"{problem} {hint}") from error


T = TypeVar("T")


@dataclass(frozen=True)
class Call(Typed):
    """What was typed at a terminal, and what is done with that."""

    @cached_property
    def reporter(self) -> Reporter:
        """Progress on stderr; it knows when the command began."""
        from crossgraft.progress import Reporter

        return Reporter(quiet=self.typed.get("quiet", False), is_brief=self.is_brief)

    @property
    def is_brief(self) -> bool:
        """Whether the result is printed in few lines, and progress leaves none on a terminal."""
        return not self.typed.get("verbose", False) and not self.typed.get("json", False)

    def asked(self, kind: type[Options]) -> dict[str, Any]:
        """What ``--config`` and flags say of the options of a verb, not validated yet.

        Raises:
            UsageError: The file cannot be read, or has a wrong key.
        """
        from crossgraft.config import read_config_file, settings_model

        read = read_config_file(self.config, settings_model(kind).model_fields) if self.config else {}
        return {**read, **super().asked(kind)}

    def values(self, kind: type[Options], asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All options of a verb: defaults < ``--config`` < flags.

        Args:
            kind: Its options.
            asked: From ``asked``, of these options and perhaps others.

        Raises:
            UsageError: A value has the wrong type, is empty or missing, or the file has a wrong key.
        """
        from crossgraft.config import settings_model, validated

        model = settings_model(kind)
        of_it = {name: value for name, value in (asked or self.asked(kind)).items() if name in model.model_fields}
        for name in {*of_it} - {*self.typed}:  # words that were typed were looked at when they were read
            refuse_empty(f"{name} in {self.config}", of_it[name], blank=options_of(kind)[name].about.is_separator)
        of_it = with_what_they_stand_for(options_of(kind), of_it)
        for name, option in options_of(kind).items():
            if option.is_required and name not in of_it:
                raise UsageError(f"{option.flag} is missing: {option.about.help}")
        return validated(model, of_it, file=self.config, given=self.typed)

    def say_first(self, what: str) -> None:
        """The first line, which comes before packages are imported that take seconds; what can be refused without them was."""
        self.reporter.began = self.reporter.clock()
        self.reporter.say(f"Starting {what}.")

    def _without_consent(self, values: dict[str, Any]) -> dict[str, Any]:
        """``values`` whose models of ``--config`` may run no code by being named there (see ``models.trusted_code``)."""
        if self.config is None:
            return values
        from crossgraft.models.zoo import without_consent

        return without_consent(values, typed=self.typed)

    def do(self, command: Command) -> int:
        """Do what the command comes to, show the result of a verb, and return the exit code.

        Raises:
            CrossgraftError: What the command raises.
        """
        call = command.call_of(self)
        if isinstance(call, int):
            return call
        from crossgraft.compute import without_cycle_collection
        from crossgraft.running.command_line import typed_command

        values = self.values(call.kind, call.asked)
        self.say_first(call.named)
        values = self._without_consent(values)
        module, _, name = call.verb.partition(":")
        is_new = module not in sys.modules
        with without_cycle_collection():
            function = partial(getattr(importlib.import_module(module), name), *call.inputs, reporter=self.reporter)
        if is_new:  # what is imported stays; otherwise each look for cycles would go through all of it
            gc.freeze()
        try:
            with typed_command() as lines:
                if issubclass(call.kind, Output):
                    about = call.about or "".join(map(str, call.inputs[-1:]))
                    result = in_own_directory(call.named, about, values, function, once=call.once)
                else:
                    result = function(**values)
            self._show(result, lines)
        finally:
            self.reporter.say_what_was_held()
        return result.exit_code

    def _show(self, result: Result[Record], lines: Sequence[str]) -> None:
        """Print one JSON document, or text; what to type next has the paths that were typed, so that it can be copied."""
        if self.typed.get("json", False):
            print_json(result.to_json())
            return
        from crossgraft.report.terminal import MOST_LINES

        shown = replace(result, command_line=lines[-1]) if lines and result.command_line else result
        if not self.is_brief:
            show(shown.as_text())
            return
        text = shown.as_text(in_lines=MOST_LINES)
        if self.reporter.say_in_brief(unless_in=f"{text}\n{shown.as_text()}"):
            text = shown.as_text(in_lines=MOST_LINES - 1)
        show(text)


def in_own_directory(command: str, data: str, values: Mapping[str, Any], work: Callable[..., T], *, once: str | None = None) -> T:
    """Do ``work`` in the first directory that is free or holds the same run.

    Args:
        command: Part of the name of the directory.
        data: As typed; the other part.
        values: Keywords of ``work``; ``out`` may be None.
        work: Called with ``values`` and a directory as ``out``.
        once: That part of the name in earlier versions, whose runs go on in their directories.

    Raises:
        OtherRunError: The only directory holds another run.
    """
    refusal: OtherRunError | None = None
    for directory in _run_directories(values["out"], command, data, once):
        try:
            return work(**{**values, "out": directory})
        except OtherRunError as error:
            refusal = error
    raise refusal or OtherRunError("No run directory was given.")


def _run_directories(out: str | Path | None, command: str, data: str, once: str | None) -> Iterator[Path]:
    """``out`` alone if it was given, else ``runs/<command>-<data>``, then the same with -2, -3 and so on."""
    if out is not None:
        yield Path(out)
        return
    from crossgraft.running.command_line import portable_name

    about = portable_name(Path(data).stem) or "data"
    if once is not None:
        yield from takewhile(Path.is_dir, _numbered(Path("runs") / f"{once}-{about}"))
    yield from _numbered(Path("runs") / f"{command}-{about}")


def _numbered(base: Path) -> Iterator[Path]:
    yield base
    yield from (base.with_name(f"{base.name}-{number}") for number in count(2))
