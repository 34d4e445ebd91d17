"""What a command of the terminal is: data, from which its flags, its help and its shell completion follow.

Another package adds a command by an entry point ``crossgraft.commands`` whose module imports nothing heavy.
"""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from crossgraft.options._option import Option, Options, options_of
from crossgraft.options.data import ClassOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.models import CodeOptions, Download, InputSize, Weights
from crossgraft.options.running import Page, Seed
from crossgraft.registry import Registry

Shell = Literal["bash", "zsh", "fish"]
"""Shells that flags are completed for."""


DATA_HELP = "Folder, CSV or TSV table, .npz file, hf:owner/name, or digits."
OF_EVERY_COMMAND = ("json", "quiet", "verbose", "debug", "config")


@dataclass(frozen=True)
class Typed:
    """What was said of a command: typed at a terminal, or written in a study.

    Attributes:
        inputs: What stands without a flag, by name; None for what was left out.
        typed: Options by name; those that were not given are missing.
    """

    inputs: Mapping[str, Any]
    typed: Mapping[str, Any]

    @property
    def config(self) -> Path | None:
        """The file of ``--config``."""
        return self.typed.get("config")

    def asked(self, kind: type[Options]) -> dict[str, Any]:
        """What is said of the options of a verb, not validated yet; at a terminal ``--config`` says some of it."""
        return {name: value for name, value in self.typed.items() if name in options_of(kind)}


@dataclass(frozen=True)
class VerbCall:
    """The call of a verb that a command comes to.

    Attributes:
        verb: ``package.module:function``.
        kind: Its options.
        inputs: Its inputs; the last one is in the name of a run directory that nobody named.
        named: The other part of that name.
        about: What stands in the name instead of the last input.
        asked: From ``Typed.asked``, of these options and perhaps others; None: of these.
        once: The other part of that name in earlier versions; directories of it that are there are tried first.
    """

    verb: str
    kind: type[Options]
    inputs: tuple[Any, ...] = ()
    named: str = field(kw_only=True)
    about: str = field(default="", kw_only=True)
    asked: Mapping[str, Any] | None = field(default=None, kw_only=True)
    once: str | None = field(default=None, kw_only=True)

    def asked_in(self, typed: Typed) -> Mapping[str, Any]:
        """What is asked of the verb."""
        return typed.asked(self.kind) if self.asked is None else self.asked


def flag_of(name: str) -> str:
    """The flag of an option.

    >>> flag_of("group_column")
    '--group-column'
    """
    return "--" + name.replace("_", "-")


@dataclass(frozen=True)
class Input:
    """What is typed without a flag.

    Attributes:
        name: Lower case; ``--help`` shows it in capitals.
        help: One sentence.
        type: ``str``, ``Path``, or a ``Literal`` of the words there are.
        repeats: Whether several may be given.
        is_required: Whether one must be given.
    """

    name: str
    help: str
    type: Any = str
    repeats: bool = False
    is_required: bool = True

    @property
    def metavar(self) -> str:
        """As it is shown."""
        return self.name.upper()


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        name: As typed.
        summary: One sentence.
        example: A command line, without ``crossgraft``.
        inputs: What is typed without a flag.
        options: Classes whose fields are its flags; what the first of them, that of the verb, needs must be given.
        verb: ``package.module:function`` of inputs and keywords, made by ``crossgraft.running.verb``.
        action: Says which verb is called with what, where that is not ``verb`` with what was typed. A command that calls none
            does what was typed, and returns the exit code.
        notes: What else should be known, as one paragraph.
        place: Its place on the help page: small numbers first.
    """

    name: str
    summary: str
    example: str
    inputs: tuple[Input, ...]
    options: tuple[type[Options], ...]
    verb: str = ""
    action: Callable[[Any], VerbCall | int] | None = None
    notes: str = ""
    place: int = 1000

    @property
    def function(self) -> Callable[..., Any]:
        """The verb, which brings what it imports."""
        module, _, name = self.verb.partition(":")
        return getattr(importlib.import_module(module), name)

    @cached_property
    def flags(self) -> Mapping[str, Option]:
        """All options that can be typed, by name."""
        of_all = {name: option for kind in self.options for name, option in options_of(kind).items()}
        return {name: option for name, option in of_all.items() if option.about.is_typed}

    def call_of(self, typed: Typed) -> VerbCall | int:
        """The call of a verb that this comes to; of a command that calls none, which has done its work then, the exit code."""
        if self.action is not None:
            return self.action(typed)
        return VerbCall(self.verb, self.options[0], tuple(typed.inputs[each.name] for each in self.inputs), named=self.name)

    def is_required(self, option: Option) -> bool:
        """Whether the command means nothing without it; an option of another class than the first chooses another verb."""
        return option.is_required and option.name in options_of(self.options[0])


def typed_as(option: Option) -> Any:
    """What one word after the flag becomes: ``bool`` (no word), ``int``, ``float``, ``Path``, a ``Literal`` or ``str``."""
    is_union = get_origin(option.type) in (Union, UnionType)
    kinds = {*(get_args(option.type) if is_union else [option.type])} - {NoneType}
    if str in kinds:
        return Path if option.about.is_path or kinds == {str, Path} else str
    simplest = [kind for kind in (bool, float, int, Path) if kind in kinds]
    literals = [kind for kind in kinds if get_origin(kind) is Literal]
    return next(iter([*simplest, *literals]), str)


RUN_INPUT = Input("run", "Run directory of crossgraft tune, or the folder model of one.", type=Path)
COMMANDS: Registry[Command] = Registry(
    "command", group="crossgraft.commands", plugin_type=Command, rooms="options:COMMAND", order=lambda item: item.place
)
"""The commands of this package, in the order of a first visit, and then those of others."""


CARRIED: Sequence[type[Options]] = (
    TableOptions,
    ClassOptions,
    Volumes,
    Unreadable,
    Splits,
    Subsets,
    Seed,
    InputSize,
    CodeOptions,
    Download,
    Weights,
    Page,
)
"""Options that mean the same to every command, so that the next one gets them too."""

DATA, RUN, ZOO = "DATA", "RUN", "ZOO.yaml"
"""What stands for a place that is not known."""

_OF_THE_RUN = ("--out", "--overwrite")
ZOO_SUFFIXES = (".yaml", ".yml")
Flag = tuple[str, str | None]


@dataclass(frozen=True)
class TypedCommand:
    """A command in parts.

    Attributes:
        verb: Name of the command; empty where nothing is known of it.
        inputs: What was typed without a flag.
        flags: Flags in order, each with its value, or None for a switch.
    """

    verb: str = ""
    inputs: tuple[str, ...] = ()
    flags: tuple[Flag, ...] = ()

    @classmethod
    def read(cls, line: str) -> TypedCommand:
        """The parts of ``crossgraft VERB INPUT … --flag value …``; empty for what is no such line.

        >>> TypedCommand.read("crossgraft rank images --models a,b --allow-download").flags
        (('--models', 'a,b'), ('--allow-download', None))
        """
        try:
            words = shlex.split(line)
        except ValueError:  # a record is data, and may have come from anywhere
            return cls()
        if len(words) < 2 or words[0] != "crossgraft":
            return cls()
        first = next((index for index, word in enumerate(words) if word.startswith("--")), len(words))
        flags: list[Flag] = []
        for word in words[first:]:
            if word.startswith("--"):
                flags.append((word, None))
            elif flags[-1][1] is None:
                flags[-1] = (flags[-1][0], word)
        return cls(words[1], tuple(words[2:first]), tuple(flags))

    @property
    def data(self) -> str:
        """What it was about; a placeholder where that is not known."""
        return self.inputs[-1] if self.inputs else DATA

    @property
    def out(self) -> str:
        """Its run directory; a placeholder where that is not known."""
        return self.value("--out") or RUN

    def value(self, flag: str) -> str | None:
        """What was typed after ``flag``; None without."""
        return next((value for name, value in self.flags if name == flag), None)

    def has(self, flag: str) -> bool:
        """Whether ``flag`` was typed."""
        return any(name == flag for name, _ in self.flags)

    def then(self, verb: str, *inputs: str, flags: Sequence[Flag] = (), carried: Sequence[type[Options]] = CARRIED) -> str:
        """The line of another command with ``flags``, and those of this one that mean the same to both.

        Args:
            verb: Name of the other command.
            *inputs: What it takes without a flag.
            flags: Its own flags.
            carried: Options whose flags it gets; only ``CodeOptions`` for other images, of which columns say nothing.

        >>> typed = TypedCommand.read("crossgraft rank images --models a,b --group-column patient --out runs/rank")
        >>> typed.then("tune", typed.data, flags=[("--model", "a")])
        'crossgraft tune images --model a --group-column patient'
        """
        same = {flag for kind in carried for option in options_of(kind).values() for flag in option.flags}
        known = {flag for option in COMMANDS.get(verb).flags.values() for flag in option.flags}
        own = {name for name, _ in flags}
        kept = [flag for flag in self.flags if flag[0] in same & known - own]
        return _line(verb, inputs, [*flags, *kept])

    def again(self, *flags: Flag, without: Sequence[str] = ()) -> str:
        """The line of this command with ``flags`` more, into a run directory of its own."""
        left_out = {*_OF_THE_RUN, *without, *(name for name, _ in flags)}
        kept = [flag for flag in self.flags if flag[0] not in left_out]
        inputs = self.inputs if self.verb else (DATA,)
        return _line(self.verb, inputs, [*kept, *flags])

    def model_called(self, name: str, *, among: Sequence[str] = ()) -> str:
        """How ``--model`` names one of the models that ``--models`` has named, where need be as one of a zoo file or folder.

        Args:
            name: The model.
            among: Names of all of them; what was typed and is none of them is a zoo file or a folder.
        """
        items = [item for item in (self.value("--models") or "").split(",") if item]
        for item in items:
            if PurePath(item).name.startswith(f"{name}.") or item.rpartition(":")[2] == name:
                return item
        zoos = [item for item in items if item.lower().endswith(ZOO_SUFFIXES)]
        typed = {item for item in items for model in among if item == model or PurePath(item).name.startswith(f"{model}.")}
        zoos += [item for item in items if name in among and ":" not in item and item not in {*zoos, *typed}]
        return name if not zoos else f"{zoos[0] if len(zoos) == 1 else ZOO}:{name}"


def _line(verb: str, inputs: Sequence[str], flags: Sequence[Flag]) -> str:
    words = [word for name, value in flags for word in ([name] if value is None else [name, value])]
    paths = [f"./{each}" if each.startswith("-") else each for each in inputs]  # which would be read as options
    return shlex.join(["crossgraft", verb, *paths, *words])
