"""What a command reads is never what it replaces."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from crossgraft.errors import OtherRunError, UsageError
from crossgraft.paths import real_path
from crossgraft.running.written_files import RUN_FILE, written_in

_NO_INPUTS = ("out", "cache_dir")
_EXPORT_FILE = "export.json"


def refuse_to_replace_inputs(out: str | Path, given: Mapping[str, object], *, words: Collection[str] = ()) -> None:
    """Look for inputs in the place of the result, through all links.

    Args:
        out: File, run directory or folder of an export.
        given: Inputs and options by name.
        words: Those of them that name a choice: ``--mode full`` reads no folder called so, but may name a file.

    Raises:
        UsageError: ``out`` is a file that the command reads.
        OtherRunError: ``out`` holds a result, and what the command reads lies there.
    """
    place = real_path(out)
    is_file = place.is_file()
    if not is_file and not any((place / name).is_file() for name in (RUN_FILE, _EXPORT_FILE)):
        return
    for name, value in given.items():
        for path in () if name in _NO_INPUTS else _paths(value):
            if not real_path(path).is_relative_to(place) or not os.path.lexists(path):
                continue
            if name in words and not Path(path).is_file():
                continue
            if is_file:
                raise UsageError(
                    f"{out} is read by this command ({name}), which would replace it. Choose another --out."
                )
            raise OtherRunError(
                f"{path} is read by this command ({name}), and lies in {out}, whose results it would replace. Choose another "
                "--out."
            )


def refuse_file_of_a_run(file: str | Path, *, but: Path | None = None) -> None:
    """Look whether a file that is to be written is the result of a run, which it would be torn out of.

    Args:
        file: Where something is to be written that is no run.
        but: Folder of the run whose file it may be.

    Raises:
        OtherRunError: A run wrote a file there.
    """
    place = real_path(file)
    for folder in place.parents if place.is_file() else ():
        if (folder / RUN_FILE).is_file() and (but is None or folder != real_path(but)):
            name = place.relative_to(folder).as_posix()
            if any(
                name == own or (own.endswith("/") and name.startswith(own)) for own in (*written_in(folder), RUN_FILE)
            ):
                raise OtherRunError(f"{file} belongs to the run in {folder}, and stays as it is. Choose another --out.")


def _paths(value: object) -> Iterator[str]:
    """Everything in a value that may be a path; ``zoo.yaml:model``, ``a,b`` and ``name:file=a`` hold some."""
    if isinstance(value, list | tuple | set):
        for each in cast("Sequence[object]", value):
            yield from _paths(each)
    elif isinstance(value, str | os.PathLike):
        text = os.fspath(cast("str | os.PathLike[str]", value))
        yield text
        for separators in (",", ",:=", ":="):
            yield from (part for part in re.split(f"[{separators}]", text) if part and part != text)
    elif isinstance(folder := getattr(value, "out", None), Path):
        yield str(folder)
