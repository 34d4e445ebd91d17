"""One command as it was typed, and what all commands do with that."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crossgraft.cli.output import print_json, show
from crossgraft.errors import OtherRunError, UsageError
from crossgraft.options._option import Options, options_of
from crossgraft.options.empty import refuse_empty
from crossgraft.options.running import Output

if TYPE_CHECKING:
    from crossgraft.progress import Reporter
    from crossgraft.records.base import Record
    from crossgraft.result import Result

T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """What was typed.

    Attributes:
        inputs: Without a flag, by name; None for what was left out.
        typed: Options by name; those that were not typed are missing.
    """

    inputs: Mapping[str, Any]
    typed: Mapping[str, Any]

    @property
    def config(self) -> Path | None:
        """The file of ``--config``."""
        return self.typed.get("config")

    @property
    def reporter(self) -> Reporter:
        """Progress on stderr."""
        from crossgraft.progress import Reporter

        return Reporter(quiet=self.typed.get("quiet", False))

    def asked(self, kind: type[Options]) -> dict[str, Any]:
        """What ``--config`` and flags say of the options of a verb, not validated yet.

        Raises:
            UsageError: The file cannot be read, or has a wrong key.
        """
        from crossgraft.config import read_config_file, settings_model

        read = read_config_file(self.config, settings_model(kind).model_fields) if self.config else {}
        return {**read, **{name: value for name, value in self.typed.items() if name in options_of(kind)}}

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
        of_it = {name: each for name, each in (asked or self.asked(kind)).items() if name in model.model_fields}
        for name in {*of_it} - {*self.typed}:  # words that were typed were looked at when they were read
            refuse_empty(f"{name} in {self.config}", of_it[name], blank=options_of(kind)[name].about.is_separator)
        for name, each in options_of(kind).items():
            if each.is_required and name not in of_it:
                raise UsageError(f"{each.flag} is missing: {each.about.help}")
        return self._without_consent(validated(model, of_it, file=self.config, given=self.typed))

    def _without_consent(self, values: dict[str, Any]) -> dict[str, Any]:
        """``values`` whose models of ``--config`` may run no code by being named there (see ``models.trusted_code``)."""
        if self.config is None:
            return values
        from crossgraft.models.zoo import named_in_a_file

        changed = dict(values)
        if values.get("models") is not None and "models" not in self.typed:
            changed["models"] = named_in_a_file(values["models"], values["allow_code"])
        if isinstance(values.get("model"), str) and "model" not in self.typed:
            (changed["model"],) = named_in_a_file([values["model"]], values["allow_code"])
        return changed

    def do(
        self,
        verb: str,
        kind: type[Options],
        *inputs: Any,
        named: str,
        about: str = "",
        asked: Mapping[str, Any] | None = None,
        once: str | None = None,
    ) -> int:
        """Call a verb, show its result, and return the exit code.

        Args:
            verb: ``package.module:function``.
            kind: Its options.
            *inputs: Its inputs; the last one is in the name of a run directory that nobody named.
            named: The other part of that name.
            about: What stands in the name instead of the last input.
            asked: From ``asked``, of these options and perhaps others.
            once: The other part of that name in earlier versions; directories of it that are there are tried first.

        Raises:
            CrossgraftError: What the verb raises.
        """
        from crossgraft.running.command_line import typed_command

        values = self.values(kind, asked)
        module, _, name = verb.partition(":")
        function = partial(getattr(importlib.import_module(module), name), *inputs, reporter=self.reporter)
        with typed_command() as lines:
            if issubclass(kind, Output):
                result = in_own_directory(named, about or "".join(map(str, inputs[-1:])), values, function, once=once)
            else:
                result = function(**values)
        self._show(result, lines)
        return result.exit_code

    def _show(self, result: Result[Record], lines: Sequence[str]) -> None:
        """Print one JSON document, or text; what to type next has the paths that were typed, so that it can be copied."""
        if self.typed.get("json", False):
            print_json(result.to_json())
        else:
            from crossgraft.report.terminal import result_as_text

            show(result_as_text(replace(result, command_line=lines[-1]) if lines and result.command_line else result))


def in_own_directory(
    command: str, data: str, values: Mapping[str, Any], work: Callable[..., T], *, once: str | None = None
) -> T:
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
    from crossgraft.running.names import portable_name

    about = portable_name(Path(data).stem) or "data"
    if once is not None:
        yield from takewhile(Path.is_dir, _numbered(Path("runs") / f"{once}-{about}"))
    yield from _numbered(Path("runs") / f"{command}-{about}")


def _numbered(base: Path) -> Iterator[Path]:
    yield base
    yield from (base.with_name(f"{base.name}-{number}") for number in count(2))
