"""What a command of the terminal is: data, from which its flags, its help and its shell completion follow.

Another package adds a command by an entry point ``crossgraft.commands`` whose module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin

from crossgraft.options._option import Option, Options, options_of

if TYPE_CHECKING:
    from crossgraft.cli.call import Call

Shell = Literal["bash", "zsh", "fish"]
"""Shells that flags are completed for."""


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
    """

    name: str
    summary: str
    example: str
    inputs: tuple[Input, ...]
    options: tuple[type[Options], ...]
    verb: str = ""
    action: Callable[[Call], int] | None = None
    notes: str = ""

    @cached_property
    def flags(self) -> Mapping[str, Option]:
        """All options that can be typed, by name."""
        of_all = {name: each for kind in self.options for name, each in options_of(kind).items()}
        return {name: each for name, each in of_all.items() if each.about.is_typed}

    def run(self, call: Call) -> int:
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
