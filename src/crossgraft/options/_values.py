"""The one validation of options: a value as a person gave it (typed, in a file, in a call) becomes one of the option's type.

What can mean one thing only is accepted: ``"1e-3"`` for a number, an array for a list. Whether the value makes sense with the
data and the other options is asked by the verb.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeGuard, Union, cast, get_args, get_origin

from crossgraft.errors import UnknownNameError, UsageError, located
from crossgraft.options._option import FromProgram, Option, Options, OptionsT, given, options_of
from crossgraft.paths import shortened

if TYPE_CHECKING:
    import pandas as pd


_SINGLE: Mapping[Any, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    Path: "a path",
    Callable: "a function",
    object: "a value",
}
_SEVERAL: Mapping[Any, str] = {int: "whole numbers", float: "numbers", str: "texts", Path: "paths"}
_OBJECTS: Mapping[str, str] = {
    "AnyScore": "a score of crossgraft.scores",
    "Augmentation": "an Augmentation",
    "BatchTransform": "a BatchTransform",
    "Loss": "a Loss",
    "Method": "a Method",
    "ModelSpec": "a ModelSpec",
    "Module": "a torch.nn.Module",
    "Regularizer": "a Regularizer",
    "Reporter": "a crossgraft.progress.Reporter",
}
"""What only a program has, by the name in the annotation of an option: at run time one class stands for all of them."""


def allowed_values(option: Option, kind: Any) -> str:
    """What a person may give: ``text, a path or a list of texts``.

    Args:
        option: Whose value it is.
        kind: Its type, or a narrower one.
    """
    if option.about.takes is not None and kind == option.type:
        return option.about.takes
    parts = [part for part in parts_of(kind) if part is not NoneType]
    words = list(dict.fromkeys(word for part in parts for word in _words(option, part, parts)))
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def parts_of(kind: Any) -> tuple[Any, ...]:
    """The types of a union; a type alone."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _words(option: Option, part: Any, beside: Sequence[Any]) -> list[str]:
    origin = get_origin(part) or part
    if origin is Literal:
        return [f"one of {', '.join(map(str, get_args(part)))}"]
    if origin is FromProgram:
        return [_OBJECTS[name] for name in re.findall(r"\w+", option.annotation) if name in _OBJECTS]
    if origin is Mapping:
        return ["a dict of names and values"]
    if origin is Sequence:
        items = parts_of(get_args(part)[0])
        if len(items) > 1 and {*items} <= {*beside}:
            return ["a list of these"]
        several = [_SEVERAL[item] for item in items if item in _SEVERAL and not (item is int and float in items)]
        several += [f"{word.rpartition(' ')[2]}s" for item in items if item is FromProgram for word in _words(option, item, ())]
        return [f"a list of {' or '.join(several)}" if several else "a list"]
    return [_SINGLE[origin]] if origin in _SINGLE else []


def refuse_empty(shown: str, value: object, *, blank: bool = False) -> None:
    """Raise for empty text, or a list that holds some.

    Args:
        shown: The flag or argument, for the message.
        value: What was given to it.
        blank: Whether blanks alone are a value, as of a separator.

    Raises:
        UsageError: It is empty.
    """
    several = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (value,)
    for text in several:
        if isinstance(text, str) and not (text if blank else text.strip()):
            raise UsageError(
                f"{shown} is empty ({text!r}). Give it a value, or leave it out; if a variable of the shell stands there, it is "
                "not set."
            )


def given_kind(data: object) -> str | None:
    """``DataFrame``, ``files`` for a sequence of paths, or None for anything else."""
    if _is_frame(data):
        return "DataFrame"
    is_list = isinstance(data, Sequence) and not isinstance(data, str | bytes) and len(cast("Sequence[object]", data))
    if is_list and all(isinstance(item, str | os.PathLike) for item in cast("Sequence[object]", data)):
        return "files"
    return None


def _is_frame(data: object) -> TypeGuard[pd.DataFrame]:
    pandas = sys.modules.get("pandas")  # who has a DataFrame has imported it
    return pandas is not None and isinstance(data, pandas.DataFrame)


_LARGEST = 2**63 - 1
_PLAIN = ("builtins", "numpy")
"""Where classes come from whose objects are no plug-in, model or receiver of progress."""


def value_of(option: Option, value: object, shown: str | None = None, *, kind: Any = None) -> Any:
    """``value`` as the type of ``option`` has it; what has it already is given back as it is.

    Args:
        option: Whose value it is.
        value: As it was typed, read or given in a call; arrays become lists.
        shown: What the person calls the option, for the message; by default its name.
        kind: A narrower type than that of the option, such as that of one word of the command line.

    Raises:
        UsageError: It has another type, or is smaller than the option allows; the message names the option.
        UnknownNameError: It is none of the words that there are.
    """
    shown, kind = shown or option.name, option.type if kind is None else kind
    refuse_empty(shown, value, blank=option.about.is_separator)
    parts = parts_of(kind)
    plain = value if Any in parts else _without_arrays(value)  # an array may be the images themselves
    if option.about.is_side and isinstance(plain, list | tuple):
        plain = _side(shown, cast("Sequence[object]", plain))
    words = [get_args(part) for part in parts if get_origin(part) is Literal]
    if words and isinstance(plain, str) and plain not in words[0] and str not in parts:
        raise UnknownNameError(f"value of {shown}", plain, words[0])
    if value is None and option.default is None:
        return None
    if value is None and NoneType not in parts:
        raise UsageError(f"{shown} needs a value: {option.about.help}")
    try:
        typed = _as(kind, plain)
    except (ValueError, OverflowError) as error:
        allowed = allowed_values(option, kind)
        what = "" if any(get_origin(part) is Literal for part in parts) else f" {shown}: {option.about.help}"
        raise UsageError(f"{shown} must be {allowed}, not {shortened(repr(value))}.{what}") from error
    least = option.about.least
    if least is not None and isinstance(typed, int | float) and typed < least:
        raise UsageError(f"{shown} must be at least {least}, not {shortened(str(value))}.")
    return typed


def checked(kind: Callable[..., OptionsT], values: Mapping[str, object]) -> OptionsT:
    """Options of what was given in a call; 1 stays 1 where 1.0 would do, as it is in the hashes of runs that are there.

    Args:
        kind: Their class.
        values: By name; each is one of the class.

    Raises:
        UsageError: One cannot be a value of its option, or is another one than an option stands for that was given, too.
        UnknownNameError: One is none of the words that there are.
    """
    known = options_of(cast("type[OptionsT]", kind))
    values = with_what_they_stand_for(known, values)
    return kind(**{name: checked_value(known[name], value) for name, value in values.items()})


def checked_value(option: Option, value: object) -> Any:
    """One value of ``checked``, which says what is raised."""
    typed = value_of(option, value)
    return value if type(value) is int and isinstance(typed, float) else typed


def with_what_they_stand_for(known: Mapping[str, Option], values: Mapping[str, object]) -> dict[str, object]:
    """``values``, and the options that some of them stand for.

    Raises:
        UsageError: One of those is given, too, with another value.
        UnknownNameError: A value stands for nothing that there is.
    """
    everything = dict(values)
    for name, value in values.items():
        stands_for = known[name].about.stands_for
        if stands_for is None or value is None:
            continue
        for other, setting in stands_for(value_of(known[name], value)).items():
            if other not in known:
                raise UnknownNameError(f"option that {known[name].flag} {value} stands for", other, known)
            flag = known[other].flag
            try:
                meant = value_of(known[other], setting)
            except UsageError as error:
                raise located(error, f"{known[name].flag} {value} stands for {flag}") from error
            if other in values and (typed := value_of(known[other], values[other])) != meant:
                raise UsageError(
                    f"{known[name].flag} {value} stands for {flag} {_in_words(meant)}, and {flag} {_in_words(typed)} is given. "
                    "Leave one of them out."
                )
            everything[other] = meant
    return everything


def _in_words(value: object) -> str:
    return " ".join(map(str, cast("Sequence[object]", value))) if isinstance(value, list | tuple) else str(value)


def refuse_alone(values: Options) -> None:
    """Refuse an option that was given without the one that it is about, or beside the one that it stands for.

    Raises:
        UsageError: The message names both.
    """
    known, chosen = options_of(type(values)), given(values)
    for name in sorted(chosen):
        flag, needs, instead = _flag(values, name), known[name].about.needs, known[name].about.instead_of
        if needs is not None and needs not in chosen:
            raise UsageError(
                f"{flag} means nothing without {known[needs].flag}. Give {known[needs].flag} too, or leave {flag} out."
            )
        if instead is not None and instead in chosen:
            raise UsageError(f"{flag} means nothing beside {known[instead].flag}. Leave {flag} out.")


def refuse_given(values: Options, names: Collection[str], why: str, *, instead: str = "") -> None:
    """Refuse options that were given where they have no effect.

    Args:
        values: What was given.
        names: Options that have none here.
        why: The reason, after the flag: ``is for …``.
        instead: What would give them one: ``Give --mode full too``.

    Raises:
        UsageError: The message names the first of them.
    """
    for name in sorted({*names} & given(values)):
        flag = _flag(values, name)
        raise UsageError(f"{flag} {why}. {f'{instead}, or leave' if instead else 'Leave'} {flag} out.")


def _flag(values: Options, name: str) -> str:
    """The flag that gives an option the value that it has."""
    option = options_of(type(values))[name]
    return option.off_flag or option.flag if getattr(values, name) is False else option.flag


def _without_arrays(value: object) -> object:
    """Arrays, tensors and series as lists, and their numbers as those of Python."""
    if isinstance(value, list | tuple):
        items = [_without_arrays(item) for item in cast("Sequence[object]", value)]
        return value if all(map(_same, items, cast("Sequence[object]", value))) else items
    listed = getattr(value, "tolist", None)
    return listed() if callable(listed) and not isinstance(value, type | memoryview) else value


def _same(first: object, second: object) -> bool:
    return first is second


def _side(shown: str, pair: Sequence[object]) -> object:
    if len(pair) != 2 or pair[0] != pair[1]:
        raise UsageError(f"{shown} must be one whole number, as inputs are square, not {shortened(repr(pair))}.")
    return pair[0]


def _as(kind: Any, value: Any) -> Any:
    """``value`` as ``kind``.

    Raises:
        ValueError: It cannot be.
    """
    if kind is object:
        return value
    if get_origin(kind) in (Union, UnionType):
        return _as_one_of(get_args(kind), value)
    if get_origin(kind) is Literal:
        return _word(value, get_args(kind))
    return _CONVERTERS[get_origin(kind) or kind](value, *get_args(kind))


def _as_one_of(kinds: Sequence[Any], value: Any) -> Any:
    """The first of ``kinds`` that ``value`` is, and otherwise the first that can be made of it."""
    for kind in kinds:
        with suppress(ValueError, OverflowError):
            if (converted := _as(kind, value)) is value:
                return converted
    for kind in kinds:
        with suppress(ValueError, OverflowError):
            if kind is not str or {*kinds} <= {str, NoneType}:  # 5 is no model, plug-in or folder
                return _as(kind, value)
    raise ValueError


def _nothing(value: Any) -> None:
    if value is not None:
        raise ValueError


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _whole(value: Any) -> int:
    is_whole = isinstance(value, str) or (isinstance(value, float) and value.is_integer())
    number = int(value) if is_whole else value
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) > _LARGEST:
        raise ValueError
    return number


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str) or not math.isfinite(float(value)):
        raise ValueError
    return float(value)


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError
    return value if isinstance(value, str) else str(value)


def _path(value: Any) -> Path:
    if not isinstance(value, Path):
        raise ValueError
    return value


def _from_program(value: Any) -> Any:
    if isinstance(value, type) or type(value).__module__.partition(".")[0] in _PLAIN:
        raise ValueError
    return value


_NO_FORM = (int, float, complex, bytes, bytearray, memoryview, set, frozenset, type, FunctionType)


def _any_form(value: Any) -> Any:
    """Images and plug-ins have many forms, which the verb tells apart; these are none of them."""
    if value is ... or type(value) is object or isinstance(value, _NO_FORM):
        raise ValueError
    return value


def _sequence(value: Any, kind: Any) -> Any:
    if kind is Any and not isinstance(value, Sequence | Mapping):
        return [_from_program(value)]  # one plug-in where there may be several
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise ValueError
    listed = cast("Sequence[object]", value)
    items = [_as(kind, item) for item in listed]
    return listed if all(map(_same, items, listed)) else items


def _mapping(value: Any, key_kind: Any, kind: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError
    named = cast("Mapping[object, object]", value)
    items = {_as(key_kind, key): _as(kind, _without_arrays(entry)) for key, entry in named.items()}
    return named if all(map(_same, items.values(), named.values())) else items


def _function(value: Any, *_: Any) -> Any:
    if not callable(value):
        raise ValueError
    return value


def _word(value: Any, words: Sequence[object]) -> Any:
    if value not in words:
        raise ValueError
    return value


_CONVERTERS: Mapping[Any, Callable[..., Any]] = {
    NoneType: _nothing,
    bool: _truth,
    int: _whole,
    float: _number,
    str: _text,
    Path: _path,
    Sequence: _sequence,
    Mapping: _mapping,
    Callable: _function,
    FromProgram: _from_program,
    Any: _any_form,
}
