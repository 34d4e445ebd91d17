"""The command that gives the same run again, written from the arguments of the call."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from crossgraft.words.visible import storable

_SHORT_FLAGS = {"allow_code": "code"}


def display_value(value: object) -> object:
    """A value as it may be written into a record: absolute paths are reduced to their last part."""
    if isinstance(value, Mapping):
        return {str(key): display_value(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [display_value(entry) for entry in value]
    if isinstance(value, str | Path):
        return storable(Path(value).name if Path(value).is_absolute() else str(value))
    return value


def command_line(
    verb: str,
    data: object,
    call: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    out: str | Path,
    before: Sequence[str] = (),
) -> str:
    """``crossgraft VERB BEFORE DATA --flag value …`` with only the arguments that differ from their defaults."""
    words = ["crossgraft", verb, *(str(display_value(word)) for word in before), str(display_value(str(data)))]
    for name, parameter in inspect.signature(function).parameters.items():
        if name in call and call[name] != parameter.default:
            words += _flag(name, call[name])
    return shlex.join([*words, "--out", str(display_value(str(out)))])


def _flag(name: str, value: object) -> list[str]:
    flag = "--" + _SHORT_FLAGS.get(name, name).replace("_", "-")
    if value is True:
        return [flag]
    if value is False:  # said of a flag that is on by default
        return [f"--no-{flag[2:]}"]
    if value is None:
        return []
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ",".join(entry["name"] if isinstance(entry, Mapping) else str(display_value(entry)) for entry in value)
    return [flag, str(display_value(value))]
