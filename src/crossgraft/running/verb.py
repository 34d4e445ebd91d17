"""What makes a public verb of a function of data, options and run: flat keywords with static types, and their documentation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload, runtime_checkable

from crossgraft.errors import CrossgraftError, UnknownNameError, UsageError
from crossgraft.options._option import Option, Options, options_of
from crossgraft.options._values import checked, given_kind, refuse_alone, refuse_empty
from crossgraft.progress import Piece, Reporter, TypicalClock, default_reporter
from crossgraft.records.base import Record, Thumbnail
from crossgraft.result import Result
from crossgraft.running.command_line import open_command_run, remember_whole, said_again, typed_command
from crossgraft.running.plugin_errors import naming_plugins
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.written_files import refuse_to_replace_inputs
from crossgraft.storage.atomic import describe_os_error
from crossgraft.words.formatting import counted

if TYPE_CHECKING:
    import pandas as pd


PAGE_FILE = "report.html"
THUMBNAILS_FILE = "thumbnails.json"
PAGE = Piece(("page",), 0.9, "page", is_measured=False)
"""Tables, pictures and page of a run: 0.6 (``predict``) to 1 CPU second (``tune``), whatever the data."""
PLAIN_PAGE = replace(PAGE, seconds=0.1)
"""The same where no figure needs matplotlib: 0.06 CPU seconds (``check``)."""


@runtime_checkable
class Publish(Protocol):
    """Writes tables, split and record into a run directory, ends the run and makes its report."""

    def __call__(
        self,
        run: RunDirectory,
        record: Record,
        reporter: Reporter,
        *,
        tables: Mapping[str, pd.DataFrame] | None = None,
        split: Record | None = None,
        thumbnails: Callable[[], list[Thumbnail]] | None = None,
    ) -> Path | None:
        """The HTML report; None where it could not be written."""
        ...


AGAIN = "Run the same command again, without --overwrite, to make up for it."


@contextmanager
def secondary(missing: str, reporter: Reporter, *, advice: str = AGAIN) -> Generator[None]:
    """Turn what goes wrong inside into a warning; for what is written when the result is on the disk already.

    Args:
        missing: What is not there then, as a sentence without its end: ``The page was not written``.
        reporter: Reporter that gets the warning.
        advice: What to do, after the advice of the error itself.
    """
    try:
        yield
    except CrossgraftError as error:
        reporter.warn(f"{missing}: {error} {advice}")
    except OSError as error:
        reporter.warn(f"{missing}: {describe_os_error(error)}. {advice}")


P = ParamSpec("P")
OptionsT = TypeVar("OptionsT", bound=Options)
AnyOptions = TypeVar("AnyOptions", bound=Options, covariant=True)
D = TypeVar("D")
E = TypeVar("E")
R = TypeVar("R")

_OPTIONS_HERE = "{options}"


@dataclass(frozen=True, eq=False)
class Run:
    """One call of a verb.

    Attributes:
        command: Its name on the command line.
        options: Options as given.
        reporter: Where progress goes.
        function: Its name in Python.
        inputs: What was given without a name.
        page: What is expected of its page.
        typed: The command line of the run directory that was opened, with whole paths; empty without one.
        began: When the command began, else when the function was called, by the clock of the reporter.
    """

    command: str
    options: Options
    reporter: Reporter
    function: str
    inputs: tuple[object, ...]
    page: Piece = PAGE
    typed: list[str] = field(default_factory=list[str])
    began: float = 0.0

    @property
    def seconds_beside(self) -> float:
        """What a plan adds to the work: all that came until now, which the same command does again, and its page."""
        page = self.page.slowed_down(TypicalClock().slowdown)
        return self.reporter.clock() - self.began + page.seconds

    @contextmanager
    def directory(
        self,
        data: object,
        *,
        typed: Mapping[str, object],
        resolved: Mapping[str, object],
        out: str | Path | None,
        seed: int | None = None,
    ) -> Generator[RunDirectory | None]:
        """The run directory; None where nothing is to be written. Arguments as in ``open_command_run``."""
        line = as_typed = ""
        if out is not None:
            line = self.said_again(typed, out=out)
            with typed_command():
                as_typed = self.said_again(typed, out=out)
                remember_whole(self.said_again(typed, out=out, whole=True))
            self.typed.append(as_typed)
        page = nullcontext() if out is None else self.reporter.followed_by(self.page)
        with (
            page,
            open_command_run(
                self.command,
                command_line=line,
                data=data if isinstance(data, str | Path) else given_kind(data) or type(data).__name__,
                typed=typed,
                resolved=resolved,
                out=out,
                overwrite=bool(getattr(self.options, "overwrite", False)),
                seed=cast(int, getattr(self.options, "seed", 0)) if seed is None else seed,
            ) as directory,
        ):
            if directory is not None and as_typed != line:
                directory.update(as_typed=as_typed)
            yield directory

    def typed_into(self, out: Path) -> str:
        """The command line, also of a verb that writes one file and no run directory."""
        if self.typed:
            return self.typed[-1]
        with typed_command():
            remember_whole(self.said_again({}, out=out, whole=True))
            return self.said_again({}, out=out)

    def said_again(self, typed: Mapping[str, object], *, out: str | Path, whole: bool = False) -> str:
        """What to type, or to call, to get the same run.

        Args:
            typed: Options that hold an object which no command line can, as their text; of data there is none.
            out: Run directory.
            whole: Whether absolute paths keep their folders, which no file is to hold.
        """
        kind = type(self.options)
        values = {name: getattr(self.options, name) for name in options_of(kind)}
        for name, option in options_of(kind).items():
            if not _can_be_typed(values[name]) and not option.about.is_path:
                values[name] = typed.get(name, values[name])
        return said_again(self.command, self.function, self.inputs, values, kind, out=out, whole=whole)


class Decorator(Protocol[P, AnyOptions]):
    """Takes functions of up to two inputs."""

    @overload
    def __call__(self, function: Callable[[AnyOptions, Run], R], /) -> Callable[P, R]: ...

    @overload
    def __call__(self, function: Callable[[D, AnyOptions, Run], R], /) -> Callable[Concatenate[D, P], R]: ...

    @overload
    def __call__(self, function: Callable[[D, E, AnyOptions, Run], R], /) -> Callable[Concatenate[D, E, P], R]: ...


def _can_be_typed(value: object) -> bool:
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]
    return all(item is None or isinstance(item, str | Path | bool | int | float) for item in several)


def verb(command: str, options: Callable[P, OptionsT], *, page: Piece = PAGE) -> Decorator[P, OptionsT]:
    """Give a function of its inputs, options and run the keywords of ``options``, with their types, defaults and sentences.

    ``{options}`` in its docstring becomes one line per option.

    Args:
        command: Name of the verb on the command line, kept in its run directories.
        options: A class made by ``crossgraft.options``.
        page: What is expected of its page.
    """
    kind = cast("type[OptionsT]", options)
    known = options_of(kind)

    def decorate(function: Callable[..., Any], /) -> Callable[..., Any]:
        inputs = list(inspect.signature(function).parameters.values())[:-2]

        @functools.wraps(function)
        @naming_plugins()
        def call(*values: Any, **keywords: Any) -> Any:
            named = [input_.name for input_ in inputs[len(values) :]]
            positional = [*values, *(keywords.pop(name) for name in named if name in keywords)]
            if len(positional) != len(inputs):
                raise UsageError(
                    f"{function.__name__} takes {counted(len(inputs), 'input')} and then keywords; got {len(positional)}."
                )
            _refuse_wrong_names(function.__name__, keywords, known)
            for input_, value in zip(inputs, positional, strict=True):
                refuse_empty(input_.name, value)
                if value is None and "None" not in str(input_.annotation):
                    raise UsageError(f"{function.__name__} needs the argument {input_.name}, and it is None.")
            everything = {**dict(zip((input_.name for input_ in inputs), positional, strict=True)), **keywords}
            chosen = checked(kind, keywords)
            refuse_alone(chosen)
            reporter = getattr(chosen, "reporter", None) or default_reporter()
            if (out := getattr(chosen, "out", None)) is not None:
                words = [name for name in keywords if not known[name].may_be_path]
                refuse_to_replace_inputs(out, everything, words=words)
            began = reporter.clock() if reporter.began is None else reporter.began
            run = Run(command, chosen, reporter, function.__name__, tuple(positional), page, began=began)
            result = function(*positional, chosen, run)
            if not isinstance(result, Result) or result.out is None:
                return result
            return replace(cast("Result[Any]", result), command_line=run.typed_into(result.out))

        vars(call).update(__signature__=_flat_signature(function, inputs, known), options=kind)
        call.__doc__ = documented(function.__doc__ or "", known)
        return call

    return cast("Decorator[P, OptionsT]", decorate)


def _refuse_wrong_names(function: str, keywords: Mapping[str, object], known: Mapping[str, Option]) -> None:
    for name in keywords:
        if name not in known:
            raise UnknownNameError("argument", name, known, hint=f"See help(crossgraft.{function}).")
    for name, option in known.items():
        if option.is_required and name not in keywords:
            raise UsageError(f"{function} needs the argument {name}: {option.about.help}")


def _flat_signature(
    function: Callable[..., Any], inputs: Sequence[inspect.Parameter], options: Mapping[str, Option]
) -> inspect.Signature:
    keywords = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if option.is_required else option.default,
            annotation=option.annotation,
        )
        for name, option in options.items()
    ]
    return inspect.signature(function).replace(parameters=[*inputs, *keywords])


def documented(docstring: str, options: Mapping[str, Option]) -> str:
    """``docstring`` with one line per option where it says ``{options}``."""
    lines: list[str] = []
    for line in docstring.splitlines():
        if line.strip() != _OPTIONS_HERE:
            lines.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        lines += [f"{indent}{name}: {sentence(option)}" for name, option in options.items()]
    return "\n".join(lines)


def sentence(option: Option) -> str:
    """What an option is, with its default in words where the value alone does not say it."""
    about = option.about
    return about.help if about.default_text is None else f"{about.help} Default: {about.default_text}."
