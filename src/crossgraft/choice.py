"""How a plug-in and its options are written: ``mixup``, ``mixup:0.4``, ``l2_sp:alpha=0.1,beta=0.01``.

A plug-in of this package is a dataclass; its fields are its options, the first field is the one that may stand
without a name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
from pydantic import TypeAdapter, ValidationError

from crossgraft.config import parse_yaml
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.paths import shortened
from crossgraft.registry import Registry
from crossgraft.words.formatting import joined

T = TypeVar("T")
_COMMAS = re.compile(r",(?![^\[]*\])")
"""Those between options, and none inside of a list."""
_DIGITS = 8
"""Length of the digest of a value that no text can hold."""
_LONGEST = 120
"""Characters of a list that is still written out."""


def choose(registry: Registry[Any], choice: str | Mapping[str, object] | T) -> T:
    """The plug-in that ``choice`` asks for, with its options.

    Args:
        registry: Holds the classes of one kind of plug-in.
        choice: ``name``, ``name:value``, ``name:option=value,option=value``, a mapping with the key ``name``, or an
            object that is there already, which is returned as it is.

    Raises:
        UnknownNameError: No plug-in or option has that name; the message gives the nearest ones.
        UsageError: A value has the wrong type, or is refused by the plug-in; or its class is incomplete.
    """
    if isinstance(choice, str):
        name, options = _parse(choice)
    elif isinstance(choice, Mapping):
        options = {str(key): value for key, value in choice.items()}
        name = str(options.pop("name", ""))
    else:
        return choice
    plugin = registry.get(name)
    if lacking := getattr(plugin, "__abstractmethods__", None):
        raise UsageError(f"The {registry.kind} {name} lacks {joined(sorted(lacking))}, without which it cannot be made.")
    fields = option_fields(plugin)
    if "" in options:
        if not fields:
            raise UsageError(f"The {registry.kind} {name} has no options; write {name} alone.")
        options[fields[0].name] = options.pop("")
    known = [field.name for field in fields]
    for option in options:
        if option not in known:
            raise UnknownNameError(f"option of {name}", option, known)
    try:
        made = _validator(plugin).validate_python(options)
    except ValidationError as error:
        raise UsageError(f"The {registry.kind} {name}: {_refusal(error.errors()[0])}") from error
    for option, value in options.items():
        # "yes" is true, and true would be the number 1
        if isinstance(value, bool) and not isinstance(getattr(made, option), bool):
            raise UsageError(f"The {registry.kind} {name}: {option} is not yes or no. See the options of {name}.")
    return made


@cache
def _validator(plugin: type[Any]) -> TypeAdapter[Any]:
    """Kept, since to make one takes longer than all that it is used for."""
    return TypeAdapter(plugin)


def pieces(text: str) -> list[str]:
    """Plug-ins between commas; a piece that is an option (``weight_decay=0``) belongs to the one before it.

    >>> pieces("ncc,copa:learning_rate=0.005,weight_decay=0,tag:0.5,xy=[0.1,0.1]")
    ['ncc', 'copa:learning_rate=0.005,weight_decay=0', 'tag:0.5,xy=[0.1,0.1]']
    """
    found: list[str] = []
    for piece in filter(None, map(str.strip, _COMMAS.split(text))):
        is_option = "=" in piece.partition(":")[0]
        if is_option and found:
            found[-1] += ("," if ":" in found[-1] else ":") + piece
        else:
            found.append(piece)
    return found


def option_fields(plugin: object) -> list[dataclasses.Field[Any]]:
    """Fields that a user writes, the first one first; ``metadata={"is_option": False}`` marks what the caller sets."""
    every = dataclasses.fields(plugin)  # pyright: ignore[reportArgumentType] - every plug-in is a dataclass
    return [field for field in every if field.init and field.metadata.get("is_option", True)]


def spell(plugin: object) -> str:
    """The text that ``choose`` turns into ``plugin`` again; options at their defaults are left out.

    A value that only Python can give, an array for example, is a short digest there, which no text can be turned back from.
    """
    values = {field.name: (getattr(plugin, field.name), field.default) for field in option_fields(plugin)}
    said = [f"{name}={written(value)}" for name, (value, default) in values.items() if _is_array(value) or value != default]
    name = str(getattr(plugin, "name", ""))
    return f"{name}:{','.join(said)}" if said else name


def written(value: object) -> object:
    """A value of an option, as ``choose`` reads it; several values are a list; what no text can hold is a digest."""
    if _is_array(value) or isinstance(value, Mapping):
        return _digest_of(cast("object", value))
    if isinstance(value, tuple | list):
        several = cast("Sequence[object]", value)
        text = f"[{','.join(map(str, several))}]" if isinstance(several, tuple) else str(several)
        return text if len(text) <= _LONGEST else _digest_of(several)
    return getattr(value, "__qualname__", value)  # of a function its name


def _is_array(value: object) -> bool:
    """Whether it holds several numbers, whose comparison with a default would be an array as well."""
    return bool(getattr(value, "ndim", 0))


def _digest_of(value: object) -> str:
    return hashlib.sha256(_content(value)).hexdigest()[:_DIGITS]


def _content(value: object) -> bytes:
    """What equal values have in common; of arrays type, shape and numbers."""
    if isinstance(value, Mapping):
        parts = cast("Mapping[object, object]", value).items()
        return b"".join(_digest_of(part).encode() for pair in parts for part in pair)
    if isinstance(value, tuple | list):
        return b"".join(_digest_of(part).encode() for part in cast("Sequence[object]", value))
    if _is_array(value):
        array = as_array(value)
        return repr((array.dtype.str, array.shape)).encode() + array.tobytes()
    return repr(value).encode()


def as_array(value: Any) -> np.ndarray:
    """Numbers of an array or a tensor; also of a parameter of a network, and of bfloat16, which NumPy lacks."""
    if hasattr(value, "detach"):  # a tensor; importing torch takes seconds, and few who choose a plug-in have one
        found = value.detach().cpu()
        value = found.float() if str(found.dtype) == "torch.bfloat16" else found
    return np.ascontiguousarray(value)


def _refusal(error: Mapping[str, Any]) -> str:
    """What pydantic found wrong, or the sentence of the plug-in itself where that raised."""
    if error["type"] == "value_error":
        return str(error["msg"]).removeprefix("Value error, ")
    option = ".".join(map(str, error["loc"]))
    return f"{option}: {error['msg']} (got {shortened(repr(error.get('input')))})."


def _parse(text: str) -> tuple[str, dict[str, object]]:
    """Name and options; the one value without a name is called ``""``."""
    name, colon, rest = text.strip().partition(":")
    if not colon:
        return name, {}
    options: dict[str, object] = {}
    for part in _COMMAS.split(rest):
        option, equals, value = part.partition("=")
        option = option.strip() if equals else ""
        if option in options:
            raise UsageError(f"{text}: {option or 'a value without a name'} is given twice. Write name=value,name=value.")
        options[option] = _value(value if equals else part)
    return name, options


def _value(text: str) -> object:
    """What YAML makes of ``text``; a text that YAML has another use for (``*.norm``) stays one."""
    try:
        return parse_yaml(text)
    except ValueError:
        return text
