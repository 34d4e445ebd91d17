"""From what a study says of a cell to its job: the call that a command with these inputs and options is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from crossgraft.bench.job import StudyJob
from crossgraft.bench.options import StudyOptions
from crossgraft.config import CONSENTS, config_hash
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.options._option import Option, Options, options_of
from crossgraft.options._values import checked_value, refuse_alone, with_what_they_stand_for
from crossgraft.options.command import COMMANDS, OF_EVERY_COMMAND, Input, Typed
from crossgraft.options.running import Output
from crossgraft.plain_types import AllowedCode
from crossgraft.running.command_line import display_value
from crossgraft.running.written_files import NO_INPUTS, paths_in

_OF_THE_STUDY = ("out", "overwrite", "reporter", "plan", *OF_EVERY_COMMAND)
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


class _Seen(NamedTuple):
    """One value, which is kept so that no other object gets its identity, and what in it may be a path."""

    value: object
    paths: tuple[str, ...]


class _Value(NamedTuple):
    """One value of one option."""

    written: object
    checked: Any
    is_given: bool


class JobMaker:
    """Makes the jobs of a study, whose cells share most of what they say: each value is checked once, not once a job.

    Args:
        command_name: Name of the command of all jobs.
        num_threads: Threads of the process that does one.
        allow_code: Code that the person named, which no study can.

    Raises:
        UsageError: The command makes no run folder.
        UnknownNameError: There is no such command.

    Cost:
        30 µs of CPU time a job whose values were seen before.
    """

    def __init__(self, command_name: str, *, num_threads: int = 1, allow_code: AllowedCode = None) -> None:
        self._command = COMMANDS.get(command_name)
        if not issubclass(self._command.options[0], Output):
            raise self._no_run_folder()
        if issubclass(self._command.options[0], StudyOptions):
            raise UsageError("A study cannot consist of studies. Write the command of their jobs.")
        self._num_threads, self._allow_code = num_threads, allow_code
        self._inputs = {each.name: each for each in self._command.inputs}
        self._seen: dict[tuple[str, int], _Seen] = {}
        self._values: dict[tuple[str, str, int], _Value] = {}
        self._sound: set[tuple[str, frozenset[str], frozenset[str]]] = set()

    def job(self, values: Mapping[str, Any]) -> StudyJob:
        """The job that the command with these inputs and options is.

        Args:
            values: By their names in a configuration file. A value that was seen before is known by its identity.

        Raises:
            UsageError: An input names a function, something is missing, or a value is none of its option.
            UnknownNameError: A name is none of the inputs and options of the command.
        """
        named: dict[str, None] = {}
        for name, value in values.items():
            seen = self._seen.get((name, id(value)))
            if seen is None:
                self._refuse(name, value)
                seen = self._seen[name, id(value)] = _Seen(value, tuple(self._paths(name, value)))
            named |= dict.fromkeys(seen.paths)
        inputs = {name: self._input(each, values.get(name)) for name, each in self._inputs.items()}
        typed = {name: value for name, value in values.items() if name not in self._inputs}
        if self._allow_code is not None and "allow_code" in self._command.flags:
            typed["allow_code"] = self._allow_code
        said = Typed(inputs, typed)
        call = self._command.call_of(said)
        if isinstance(call, int) or not issubclass(call.kind, Output):
            raise self._no_run_folder()
        known, keywords = options_of(call.kind), call.asked_in(said)
        if "workers" in known:  # by default all cores, which the jobs beside it have
            keywords = {"workers": self._num_threads, **keywords}
        key = self._key(call.verb, call.kind, known, call.inputs, keywords)
        return StudyJob(key, call.verb, call.inputs, dict(keywords), self._num_threads, tuple(named))

    def _key(
        self, verb: str, kind: type[Options], known: Mapping[str, Option], inputs: Sequence[Any], keywords: Mapping[str, Any]
    ) -> str:
        """A hash of everything that decides the numbers."""
        if any(known[name].about.stands_for is not None for name in keywords):
            keywords = with_what_they_stand_for(known, keywords)
        of_job = {name: self._value(verb, known[name], value) for name, value in keywords.items()}
        given = [name for name in sorted(of_job) if of_job[name].is_given]
        together = (verb, frozenset(keywords), frozenset(given))
        if together not in self._sound:
            for name, option in known.items():
                if option.is_required and name not in keywords:
                    raise UsageError(f"crossgraft {self._command.name} needs {name}: {option.about.help}")
            refuse_alone(kind(**{name: value.checked for name, value in of_job.items()}))
            self._sound.add(together)
        deciding = {name: of_job[name].checked for name in given if known[name].about.decides and name not in CONSENTS}
        return config_hash({"verb": verb, "inputs": list(inputs), "threads": self._num_threads, **deciding})

    def _value(self, verb: str, option: Option, written: object) -> _Value:
        key = (verb, option.name, id(written))
        value = self._values.get(key)
        if value is None:
            checked = checked_value(option, written)
            value = self._values[key] = _Value(written, checked, checked != option.default)
        return value

    def _paths(self, name: str, value: object) -> Iterator[str]:
        """What may be a path; of an option that names a choice, only what looks like a file."""
        is_choice = name not in self._inputs and not self._command.flags[name].may_be_path
        for text in () if name in NO_INPUTS else paths_in(value):
            if not is_choice or Path(text).suffix:
                yield text

    def _refuse(self, name: str, value: object) -> None:
        """Refuse what is none of the command's names, or not for a study to say."""
        if name in CONSENTS:
            raise UsageError(f"{name} is set, which a file cannot allow.")
        if name in _OF_THE_STUDY:
            raise UsageError(f"{name} cannot be set for a job: the study decides it.")
        if name not in self._inputs and name not in self._command.flags:
            hint = f"See crossgraft {self._command.name} --help."
            raise UnknownNameError("option", name, [*self._inputs, *self._command.flags], hint=hint)
        if not _is_plain(value):
            raise UsageError(
                f"{name} is a {type(value).__name__}. A job may run on another machine, so a study has numbers, texts and lists."
            )

    def _input(self, each: Input, value: Any) -> Any:
        """An input as its command takes it: one text, or a list of them."""
        if each.is_required and value is None:
            raise UsageError(f"crossgraft {self._command.name} needs {each.name}: {each.help}")
        several: list[Any] = list(value) if isinstance(value, list | tuple) and each.repeats else [value]
        for text in several:
            if text is not None and not isinstance(text, str | Path):
                what = "is a text, or a list of them" if each.repeats else "is a text"
                raise UsageError(f"{each.name} {what}, not {display_value(text)!r}. A number is written in quotes.")
            if isinstance(text, str) and (function := _function_in(text)) is not None:
                raise UsageError(
                    f"{each.name} names the function {function}, which would run. Name it in a zoo file, and type --code."
                )
        if value is None or not each.repeats:
            return value
        return [each.type(text) for text in several]

    def _no_run_folder(self) -> UsageError:
        return UsageError(f"crossgraft {self._command.name} makes no run folder, so a study cannot consist of it.")


def _function_in(text: str) -> str | None:
    """The part of an input, with commas, that would be taken for a function that builds a network: ``package.module:name``."""
    for part in map(str.strip, text.split(",")):
        library, _, _ = part.partition(":")
        if _FUNCTION.fullmatch(part) and library not in ("torchvision", "hf") and not library.endswith((".yaml", ".yml")):
            return part
    return None


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, cast("Sequence[object]", value)))
    if isinstance(value, Mapping):
        return all(map(_is_plain, cast("Mapping[object, object]", value).values()))
    return value is None or isinstance(value, str | int | float | Path)
