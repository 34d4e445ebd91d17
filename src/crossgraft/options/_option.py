"""What an option is: a field of a frozen dataclass that says its name, type, default, sentence and group in one place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Any, ClassVar, TypedDict, TypeVar, Unpack, dataclass_transform, get_type_hints, overload

T = TypeVar("T")
OptionsT = TypeVar("OptionsT", bound="Options")

_ABOUT = "crossgraft"


class _AnyObject(type):
    """Whose instance is anything: `_values` refuses what is none of its class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return True


class FromProgram(metaclass=_AnyObject):
    """Stands for an object that no command line and no file can hold, so that options can be read without its class."""


@dataclass(frozen=True)
class About:
    """What is said about an option beside its name, type and default.

    Attributes:
        help: One sentence, for the docstring, the command line and the documentation alike.
        decides: Whether it may change a number; what does not is left out of the configuration of a run and of its hash.
        only_if_given: Whether the configuration of a run leaves it out at its default, so that run folders of versions that did
            not have it go on.
        default_text: The default in words, where None stands for a choice.
        flag: Flag of the command line where it is not the name.
        repeats: Whether the flag may be given several times.
        least: Smallest number that the command line accepts.
        is_common: Whether ``--help`` lists it among the options that most people need.
        is_typed: Whether the command line has it; False for what only a program can give.
        in_protocol: Whether a result that was measured with another value is another protocol of a known result.
        opposite: Flag that switches it off, where it is not ``no-`` and the name.
        is_path: Whether the command line takes a path, where a program may give something else, too.
        is_side: Whether a program may also give a pair of equal numbers: height and width.
        needs: Name of the option without which this one means nothing.
        instead_of: Name of the option beside which this one means nothing.
        is_separator: Whether blanks alone are a value.
        stands_for: The options, by name, that a value of this one stands for; beside it they cannot be given otherwise.
        takes: What a program may give, in words, where the type says only that it may be anything.
        within: Smallest and largest value that a trainer takes.
        row: Heading of its row in a table of the settings in force, where it is not the name.
        has_row: Whether there is such a row; False where another row says it.
        in_words: What that row says, of all that is in force; None: there is no row now. By default the value, where it is not
            the default of the option.
    """

    help: str
    decides: bool = True
    only_if_given: bool = False
    default_text: str | None = None
    flag: str | None = None
    repeats: bool = False
    least: int | None = None
    is_common: bool = False
    is_typed: bool = True
    in_protocol: bool = False
    opposite: str | None = None
    is_path: bool = False
    is_side: bool = False
    needs: str | None = None
    instead_of: str | None = None
    is_separator: bool = False
    stands_for: Callable[[Any], Mapping[str, object]] | None = None
    takes: str | None = None
    within: tuple[float, float] | None = None
    row: str | None = None
    has_row: bool = True
    in_words: Callable[[Any], str | None] | None = None


class _Said(TypedDict, total=False):
    """Fields of ``About`` that have a default."""

    decides: bool
    only_if_given: bool
    default_text: str | None
    flag: str | None
    repeats: bool
    least: int | None
    is_common: bool
    is_typed: bool
    in_protocol: bool
    opposite: str | None
    is_path: bool
    is_side: bool
    needs: str | None
    instead_of: str | None
    is_separator: bool
    stands_for: Callable[[Any], Mapping[str, object]] | None
    takes: str | None
    within: tuple[float, float] | None
    row: str | None
    has_row: bool
    in_words: Callable[[Any], str | None] | None


@overload
def option(help: str, **about: Unpack[_Said]) -> Any: ...


@overload
def option(help: str, *, default: T, **about: Unpack[_Said]) -> T: ...


def option(help: str, *, default: Any = MISSING, **about: Unpack[_Said]) -> Any:
    """A field of an options class; arguments as in ``About``. Without ``default`` it has to be given."""
    return dataclasses.field(default=default, metadata={_ABOUT: About(help, **about)})


@dataclass(frozen=True)
class Option:
    """One option of a verb, as the command line, the docstrings and the documentation read it.

    Attributes:
        name: Name of the keyword, and of the key in a configuration file.
        type: As a program gives it; one class stands for all objects that only a program has.
        annotation: The same as it is written.
        default: ``MISSING`` where it has to be given.
        owner: The class that declares it; its group is the heading under which the option is listed.
        about: What is said about it.
    """

    name: str
    type: Any
    annotation: str
    default: object
    owner: type[Options]
    about: About

    @property
    def group(self) -> str:
        """Heading under which it is listed."""
        return self.owner.group

    @property
    def is_required(self) -> bool:
        """Whether it has to be given."""
        return self.default is MISSING

    def is_default(self, value: object) -> bool:
        """Whether ``value`` is what nobody has to say; a DataFrame, which compares cell by cell, never is."""
        return not self.is_required and (value == self.default) is True

    @property
    def may_be_path(self) -> bool:
        """Whether a text may be a file or folder that is read or written, a model or a run among them."""
        return self.about.is_path or self.type is Any or "Path" in str(self.type)

    @property
    def flag(self) -> str:
        """Its flag on the command line."""
        return _as_flag(self.about.flag or self.name)

    @property
    def flags(self) -> tuple[str, ...]:
        """All flags that set it: its own, and that of its name."""
        return tuple(dict.fromkeys([self.flag, _as_flag(self.name)]))

    @property
    def off_flag(self) -> str | None:
        """The flag that switches it off, where it is on by default."""
        return _as_flag(self.about.opposite or f"no_{self.name}") if self.default is True else None


def _as_flag(name: str) -> str:
    return "--" + name.replace("_", "-")


class Options:
    """Base of the options of all verbs.

    Attributes:
        group: Heading of the fields that a class adds.
    """

    group: ClassVar[str] = "Options"


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(option,))
def options(cls: type[OptionsT]) -> type[OptionsT]:
    """Make ``cls`` a frozen dataclass whose fields are given by name.

    The fields of the last base come first, as everywhere in Python's dataclasses.
    """
    return dataclass(frozen=True, kw_only=True)(cls)


def options_of(kind: type[Options]) -> dict[str, Option]:
    """The options of a verb by name, in the order of its signature."""
    return dict(_options_of(kind))


@cache
def _options_of(kind: type[Options]) -> dict[str, Option]:
    hints = get_type_hints(kind)
    owners = {name: base for base in reversed(kind.__mro__) if issubclass(base, Options) for name in _own(base)}
    by_name: dict[str, Option] = {}
    for field in dataclasses.fields(kind):  # pyright: ignore[reportArgumentType]  # every subclass is a dataclass
        about: About = field.metadata[_ABOUT]
        by_name[field.name] = Option(field.name, hints[field.name], str(field.type), field.default, owners[field.name], about)
    return by_name


def _own(base: type) -> list[str]:
    return list(vars(base).get("__annotations__", {}))


def given(values: Options) -> frozenset[str]:
    """Names of the options that are not at their defaults."""
    return frozenset(name for name, spec in options_of(type(values)).items() if not spec.is_default(getattr(values, name)))


def configuration(values: OptionsT, kind: type[OptionsT] | None = None) -> dict[str, Any]:
    """Name and value of every option that may change a number.

    Args:
        values: Options of a verb.
        kind: Only the options of this class, a base of that of ``values``.
    """
    pairs = {name: (getattr(values, name), spec) for name, spec in options_of(kind or type(values)).items() if spec.about.decides}
    return {name: value for name, (value, spec) in pairs.items() if not (spec.about.only_if_given and spec.is_default(value))}


def from_mapping(kind: Callable[..., OptionsT], values: Mapping[str, object]) -> OptionsT:
    """Options from names and values that were read and validated elsewhere."""
    return kind(**values)


def narrowed(kind: type[OptionsT], options: Options, **changes: object) -> OptionsT:
    """Those of ``options`` that ``kind`` knows, with ``changes``."""
    return kind(**{name: getattr(options, name) for name in options_of(kind)} | changes)
