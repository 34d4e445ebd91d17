"""The command or the call that gives the same run again, written from the options of the call."""

from __future__ import annotations

import re
import shlex
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from crossgraft.options import Option, Options, options_of
from crossgraft.paths import is_file, is_folder
from crossgraft.runs.typed_command import DATA
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


def said_again(
    verb: str,
    function: str,
    inputs: Sequence[object],
    values: Mapping[str, object],
    options: type[Options],
    *,
    out: str | Path,
) -> str:
    """The command or, outside of the command line, the call in Python that gives the same run.

    Of an absolute path only the last part is said, behind ``…/``.

    Args:
        verb: Name on the command line, with the words that choose it: ``list confounders``.
        function: Name of the function in ``crossgraft``.
        inputs: What is given without a name.
        values: All options; of those that differ from their defaults, all that do more than to replace a run are said.
        options: Their class.
        out: Run directory.
    """
    said = {
        name: (option, values[name])
        for name, option in options_of(options).items()
        if name in values and option.about.is_typed and name not in _NOT_SAID and values[name] != option.default
    }
    if _IS_TYPED.get():
        words = [word for option, value in said.values() for word in _words(option, value)]
        places = [_word(each) if isinstance(each, str | Path) else DATA for given in inputs for each in _each(given)]
        return shlex.join(["crossgraft", *verb.split(), *places, *words, "--out", _word(out)])
    given = [f"{name}={_in_python(value)}" for name, (_, value) in said.items()]
    return f"crossgraft.{function}({', '.join([*map(_in_python, inputs), *given, f'out={_in_python(str(out))}'])})"


def with_folders(line: str, given: Iterable[object]) -> str:
    """A command line with the folders that ``said_again`` left out, for the terminal that they were typed at.

    Args:
        line: From ``said_again``.
        given: What was typed: texts, paths, and sequences of them.

    >>> with_folders("crossgraft rank …/a.npz --seed 7", ["/data/a.npz", 7])
    'crossgraft rank /data/a.npz --seed 7'
    """
    whole: dict[str, set[str]] = {}
    for value in given:
        several = list(cast("Sequence[object]", value)) if _is_list(value) else [value]
        for each in filter(lambda one: isinstance(one, str | Path), [*several, ",".join(map(str, several))]):
            whole.setdefault(_shown(cast("str | Path", each)), set()).add(storable(str(each)))
    of_one = {short: next(iter(texts)) for short, texts in whole.items() if len(texts) == 1}
    return shlex.join(of_one.get(word, word) for word in shlex.split(line))


_NOT_SAID = ("out", "overwrite", "plan")
FOLDERS_LEFT_OUT = "…/"
"""Stands for the folders of an absolute path: they name people, institutes and patients."""
_IS_TYPED: ContextVar[bool] = ContextVar("is_typed", default=False)


@contextmanager
def typed_command() -> Generator[None]:
    """What runs inside was typed at a terminal, and is said again as a command line."""
    token = _IS_TYPED.set(True)
    try:
        yield
    finally:
        _IS_TYPED.reset(token)


def _each(given: object) -> Sequence[object]:
    """What was given in one place, where several paths may stand."""
    several = cast("Sequence[object]", given) if _is_list(given) else [given]
    return several if all(isinstance(each, str | Path) for each in several) else [given]


def _words(option: Option, value: object) -> list[str]:
    if value is True:
        return [option.flag]
    if value is False:  # said of a flag that is on by default
        return [option.off_flag or f"--no-{option.flag[2:]}"]
    if value is None:
        return []
    several = list(cast("Sequence[object]", value)) if _is_list(value) else [value]
    if option.about.repeats:
        return [word for each in several for word in (option.flag, _word(each))]
    return [option.flag, ",".join(map(_word, several))]


def _word(value: object) -> str:
    """One value as it is typed; what only a program can hold, by its name."""
    if isinstance(value, Mapping):
        return str(cast("Mapping[str, object]", value).get("name", value))
    return _shown(value) if isinstance(value, str | Path) else str(value)


def _in_python(value: object) -> str:
    """An expression for a value; what cannot be written down is a name, as of a variable."""
    if isinstance(value, str | Path):
        return repr(_shown(value))
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return "{" + ", ".join(f"{_in_python(key)}: {_in_python(entry)}" for key, entry in items) + "}"
    if _is_list(value) and all(
        isinstance(each, str | int | float | Path | Mapping) for each in cast("Sequence[Any]", value)
    ):
        return "[" + ", ".join(map(_in_python, cast("Sequence[object]", value))) + "]"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(value).__name__).lower()


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _shown(value: str | Path) -> str:
    """Without folders of absolute paths, of which several may stand in one text, with commas."""
    is_there = is_file(Path(value)) or is_folder(Path(value))
    several = value.split(",") if isinstance(value, str) and not is_there else [value]
    return storable(",".join(map(_without_folders, several)))


def _without_folders(value: str | Path) -> str:
    path = Path(value)
    return FOLDERS_LEFT_OUT + path.name if path.is_absolute() else str(value)
