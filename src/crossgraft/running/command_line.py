"""The command or the call that gives the same run again, written from the options of the call."""

from __future__ import annotations

import hashlib
import itertools
import re
import shlex
import unicodedata
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any, cast

from crossgraft.config import CONSENTS
from crossgraft.options._option import Option, Options, options_of
from crossgraft.options.command import DATA
from crossgraft.paths import is_file, is_folder
from crossgraft.running.run_directory import RunDirectory, open_run
from crossgraft.words.visible import storable

# Windows refuses these in names, and has devices of the reserved names in every folder, with any extension.
_REFUSED = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]+')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)
_LONGEST_BYTES = 60


def portable_name(text: str) -> str:
    """``text`` as the name of one file or folder on Linux, macOS and Windows; as it is if it is one already.

    >>> portable_name("hf:owner/chest x-ray?"), portable_name("aux"), portable_name("brustkrebs")
    ('hf-owner-chest x-ray', '_aux', 'brustkrebs')
    """
    # macOS may give the letters of a name in parts (a + umlaut), which other systems take for another name.
    name = _REFUSED.sub("-", unicodedata.normalize("NFC", storable(text))).strip(" .-")
    if len(name.encode()) > _LONGEST_BYTES:
        # Windows limits whole paths to 260 characters; the digest keeps names apart that begin alike.
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        name = f"{name.encode()[: _LONGEST_BYTES - 9].decode(errors='ignore').rstrip(' .-')}-{digest}"
    return f"_{name}" if _RESERVED.fullmatch(name) else name


def portable_names(texts: Iterable[str]) -> list[str]:
    """As ``portable_name``; with a number where two of them would be one folder.

    >>> portable_names(["vit", "ViT", "vit?", "vit-2"])
    ['vit', 'ViT-3', 'vit-4', 'vit-2']
    """
    names = [portable_name(text) for text in texts]
    alike, taken = {name.casefold() for name in names}, set[str]()
    for place, name in enumerate(names):
        others = (other for number in itertools.count(2) if (other := f"{name}-{number}").casefold() not in alike | taken)
        names[place] = next(others) if name.casefold() in taken else name
        taken.add(names[place].casefold())
    return names


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
    whole: bool = False,
) -> str:
    """The command or, outside of the command line, the call in Python that gives the same run.

    Of an absolute path only the last part is said, behind ``…/``, as names of folders may be those of people.

    Args:
        verb: Name on the command line, with the words that choose it: ``list confounders``.
        function: Name of the function in ``crossgraft``.
        inputs: What is given without a name.
        values: All options; of those that differ from their defaults, all that do more than to replace a run are said.
        options: Their class.
        out: Run directory.
        whole: Whether paths stay whole, for the terminal that they were typed at.

    >>> from crossgraft.options.running import Seed
    >>> with typed_command():
    ...     print(said_again("rank", "rank_models", ["/data/a.npz"], {"seed": 7}, Seed, out="run", whole=True))
    crossgraft rank /data/a.npz --seed 7 --out run
    """
    path = str if whole else _without_folders
    typed = {
        name: (option, values[name])
        for name, option in options_of(options).items()
        if name in values and option.about.is_typed and name not in _NOT_SAID and not option.is_default(values[name])
    }
    if _TYPED.get() is not None:
        words = [word for option, value in typed.values() for word in _words(option, value, path)]
        positional = [_word(item, path) if isinstance(item, str | Path) else DATA for value in inputs for item in _items(value)]
        return shlex.join(["crossgraft", *verb.split(), *positional, *words, "--out", _word(out, path)])
    arguments = [*(_in_python(value, path) for value in inputs)]
    arguments += [f"{name}={_in_python(value, path)}" for name, (_, value) in typed.items()]
    return f"crossgraft.{function}({', '.join([*arguments, f'out={_in_python(str(out), path)}'])})"


_Path = Callable[[str | Path], str]
_NOT_SAID = ("out", "overwrite", "plan")
FOLDERS_LEFT_OUT = "…/"
"""Stands for the folders of an absolute path: they name people, institutes and patients."""
_TYPED: ContextVar[list[str] | None] = ContextVar("typed", default=None)


@contextmanager
def typed_command() -> Generator[list[str]]:
    """What runs inside was typed at a terminal, and is said again as a command line; gets lines with whole paths."""
    outer = _TYPED.get()
    lines = [] if outer is None else outer
    token = _TYPED.set(lines)
    try:
        yield lines
    finally:
        _TYPED.reset(token)


def remember_whole(line: str) -> None:
    """Keep a line for the terminal that it was typed at: no result, which may be pickled and sent, has its folders."""
    if (lines := _TYPED.get()) is not None:
        lines.append(line)


def _items(value: object) -> Sequence[object]:
    """What was given in one place, where several paths may stand."""
    several = cast("Sequence[object]", value) if _is_list(value) else [value]
    return several if all(isinstance(item, str | Path) for item in several) else [value]


def _words(option: Option, value: object, path: _Path) -> list[str]:
    if value is True:
        return [option.flag]
    if value is False:  # said of a flag that is on by default
        return [option.off_flag or f"--no-{option.flag[2:]}"]
    if value is None:
        return []
    if option.about.is_path and not isinstance(value, str | Path | list | tuple):  # data that a program holds
        return [option.flag, DATA]
    several = list(cast("Sequence[object]", value)) if _is_list(value) else [value]
    if option.about.repeats:
        return [word for item in several for word in (option.flag, _word(item, path))]
    return [option.flag, ",".join(_word(item, path) for item in several)]


def _word(value: object, path: _Path) -> str:
    """One value as it is typed; what only a program can hold, by its name."""
    if isinstance(value, Mapping):
        return str(cast("Mapping[str, object]", value).get("name", value))
    return _shown(value, path) if isinstance(value, str | Path) else str(value)


def _in_python(value: object, path: _Path) -> str:
    """An expression for a value; what cannot be written down is a name, as of a variable."""
    if isinstance(value, str | Path):
        return repr(_shown(value, path))
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return "{" + ", ".join(f"{_in_python(key, path)}: {_in_python(entry, path)}" for key, entry in items) + "}"
    if _is_list(value) and all(isinstance(item, str | int | float | Path | Mapping) for item in cast("Sequence[Any]", value)):
        return "[" + ", ".join(_in_python(item, path) for item in cast("Sequence[object]", value)) + "]"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(value).__name__).lower()


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _shown(value: str | Path, path: _Path) -> str:
    """With each path as ``path`` says it; several may stand in one text, with commas."""
    is_there = is_file(Path(value)) or is_folder(Path(value))
    several = value.split(",") if isinstance(value, str) and not is_there else [value]
    return storable(",".join(map(path, several)))


def _without_folders(value: str | Path) -> str:
    path = Path(value)
    return FOLDERS_LEFT_OUT + path.name if path.is_absolute() else str(value)


def open_command_run(
    command: str,
    *,
    command_line: str,
    data: str | Path,
    typed: Mapping[str, object],
    resolved: Mapping[str, object],
    out: str | Path | None,
    overwrite: bool,
    seed: int,
) -> AbstractContextManager[RunDirectory | None]:
    """Open ``out`` for a call of a verb; None inside the block when nothing is to be written.

    Args:
        command: Name of the verb, for example ``rank``.
        command_line: What gives the same run again.
        data: Where the data are; absolute paths are reduced to their last part.
        typed: Options that may change a number, as a command line gives them.
        resolved: What they were resolved to; replaces entries of ``typed`` in the configuration.
        out: Run directory, or None.
        overwrite: Remove an earlier run in ``out`` first.
        seed: Random seed.

    Raises:
        RunDirectoryError: ``out`` is in use or holds another run.
        StorageError: The folder cannot be written.
    """
    if out is None:
        return nullcontext()
    settings = {"data": data, **typed, **resolved}
    not_hashed = ("seed", *CONSENTS)  # what is allowed changes no number
    return open_run(
        Path(out),
        command=command,
        command_line=command_line,
        config={name: display_value(value) for name, value in settings.items() if name not in not_hashed},
        seed=seed,
        overwrite=overwrite,
    )
