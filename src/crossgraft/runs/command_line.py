"""The command that gives the same run again, written from the options of the call."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from crossgraft.options import Options, options_of
from crossgraft.words.visible import storable


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
    typed: Mapping[str, object],
    options: type[Options],
    *,
    out: str | Path,
    before: Sequence[str] = (),
    from_here: bool = False,
) -> str:
    """``crossgraft VERB BEFORE DATA --flag value …`` with only the options that differ from their defaults.

    ``from_here`` reduces absolute paths to what leads there from the current folder: for a terminal, where it can be typed.
    """
    shown = _from_here if from_here else display_value
    words = ["crossgraft", verb, *(str(shown(word)) for word in before), str(shown(str(data)))]
    for name, option in options_of(options).items():
        if name in typed and typed[name] != option.default:
            words += _flag(option.flag, typed[name], shown)
    return shlex.join([*words, "--out", str(shown(str(out)))])


def _from_here(value: object) -> object:
    """A value as it can be typed in the current folder; of a path that lies elsewhere only the last part, after …."""
    if not isinstance(value, str | Path) or not Path(value).is_absolute():
        return display_value(value)
    path, here = Path(value), Path.cwd()
    inside = path.relative_to(here) if path.is_relative_to(here) else Path("…", path.name)
    return storable(inside.as_posix())


def _flag(flag: str, value: object, shown: Callable[[object], object]) -> list[str]:
    if value is True:
        return [flag]
    if value is False:  # said of a flag that is on by default
        return [f"--no-{flag[2:]}"]
    if value is None:
        return []
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = ",".join(entry["name"] if isinstance(entry, Mapping) else str(shown(entry)) for entry in value)
    return [flag, str(shown(value))]
