"""A command as it was typed, and what to type after it with the same arguments."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from crossgraft.options._option import Options, options_of
from crossgraft.options.command import COMMANDS
from crossgraft.options.data import ClassOptions, Splits, Subsets, TableOptions, Unreadable, Volumes
from crossgraft.options.models import CodeOptions, Download, InputSize, Weights
from crossgraft.options.running import Page, Seed

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
_ZOO_SUFFIXES = (".yaml", ".yml")
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
        first = next((place for place, word in enumerate(words) if word.startswith("--")), len(words))
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

    def then(
        self,
        verb: str,
        *inputs: str,
        flags: Sequence[Flag] = (),
        carried: Sequence[type[Options]] = CARRIED,
    ) -> str:
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
        same = {flag for kind in carried for each in options_of(kind).values() for flag in each.flags}
        known = {flag for each in COMMANDS.get(verb).flags.values() for flag in each.flags}
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
        zoos = [item for item in items if item.lower().endswith(_ZOO_SUFFIXES)]
        typed = {item for item in items for each in among if item == each or PurePath(item).name.startswith(f"{each}.")}
        zoos += [item for item in items if name in among and ":" not in item and item not in {*zoos, *typed}]
        return name if not zoos else f"{zoos[0] if len(zoos) == 1 else ZOO}:{name}"


def _line(verb: str, inputs: Sequence[str], flags: Sequence[Flag]) -> str:
    words = [word for name, value in flags for word in ([name] if value is None else [name, value])]
    return shlex.join(["crossgraft", verb, *inputs, *words])
