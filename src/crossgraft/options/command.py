"""What a command of the terminal is: data, from which its flags, its help and its shell completion follow.

Another package adds a command by an entry point ``crossgraft.commands`` whose module imports nothing heavy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Protocol, Union, get_args, get_origin, runtime_checkable

from crossgraft.options._option import Option, Options, options_of
from crossgraft.registry import Registry

Shell = Literal["bash", "zsh", "fish"]
"""Shells that flags are completed for."""


DATA_HELP = "Folder, CSV or TSV table, .npz file, hf:owner/name, or digits."
OF_EVERY_COMMAND = ("json", "quiet", "debug", "config")


@runtime_checkable
class Typed(Protocol):
    """What was typed, as the action of a command sees it."""

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Without a flag, by name; None for what was left out."""
        ...

    @property
    def typed(self) -> Mapping[str, Any]:
        """Options by name; those that were not typed are missing."""
        ...

    @property
    def config(self) -> Path | None:
        """The file of ``--config``."""
        ...

    def asked(self, kind: type[Options]) -> dict[str, Any]:
        """What ``--config`` and flags say of the options of a verb, not validated yet."""
        ...

    def values(self, kind: type[Options]) -> dict[str, Any]:
        """All options of a verb: defaults < ``--config`` < flags."""
        ...

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
        """Call a verb, show its result, and return the exit code."""
        ...


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
        verb: ``package.module:function`` of inputs and keywords, made by ``crossgraft.verbs.verb``.
        action: Does what was typed and returns the exit code, where that is more than to call ``verb`` and show its result.
        notes: What else should be known, as one paragraph.
        place: Its place on the help page: small numbers first.
    """

    name: str
    summary: str
    example: str
    inputs: tuple[Input, ...]
    options: tuple[type[Options], ...]
    verb: str = ""
    action: Callable[[Typed], int] | None = None
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
        of_all = {name: each for kind in self.options for name, each in options_of(kind).items()}
        return {name: each for name, each in of_all.items() if each.about.is_typed}

    def run(self, call: Typed) -> int:
        """Do what was typed, show the result, and return the exit code."""
        if self.action is not None:
            return self.action(call)
        return call.do(self.verb, self.options[0], *(call.inputs[each.name] for each in self.inputs), named=self.name)

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
    "command", group="crossgraft.commands", plugin_type=Command, rooms="options:COMMAND", order=lambda each: each.place
)
"""The commands of this package, in the order of a first visit, and then those of others."""
