"""The list of what a run wrote, so that --overwrite takes the place of that only. A name that ends in ``/`` is a folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from crossgraft.errors import DataError, OtherRunError, StorageError, UsageError
from crossgraft.paths import read_whole, real_path, shortened
from crossgraft.records.base import RunRecord
from crossgraft.storage.atomic import describe_os_error

WRITTEN = ".files"
"""Name of the list."""

RUN_FILE = "run.json"
BEFORE = ".crossgraft-before"
UNFINISHED = ".crossgraft-unfinished"


def written_files(path: Path) -> list[str]:
    """The names in the list of what a run wrote; empty lines are none."""
    listing = path / WRITTEN
    try:
        return [name for name in read_whole(listing).decode("utf-8").splitlines() if name]
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"Cannot read {listing}: {error}. Remove the folder by hand, or choose another --out.") from error


def written_in(path: Path) -> Sequence[str]:
    """What the run wrote, without its list and its record; a file before the folder that it lies in."""
    names = dict.fromkeys([*written_files(path), "report.html"])
    for name in names:
        _inside(path, name)
    own = {(path / name).resolve() for name in (RUN_FILE, WRITTEN, BEFORE, UNFINISHED, ".lock", "")}
    return sorted((name for name in names if _entry(path, name) not in own), key=lambda name: name.endswith("/"))


def _entry(path: Path, name: str) -> Path:
    """The file or link itself, by the real folder that it lies in."""
    return (path / name).parent.resolve() / Path(name).name


def _inside(path: Path, name: str) -> Path:
    """The file of this name in the folder; the list is data, which may have come with the folder from anywhere."""
    file = path / name
    try:
        stays = file.parent.resolve().is_relative_to(path.resolve()) and file.name != ".." and "\0" not in name
    except (OSError, ValueError, RuntimeError):  # a loop of links, a NUL
        stays = False
    if not stays:
        raise DataError(
            f"{path / WRITTEN} lists {name!r}, which is not in the folder of the run, so nothing was removed. A run lists its "
            "own files only: somebody changed the list. Remove the folder by hand, or choose another --out."
        )
    return file


def refuse_files_of_others(path: Path) -> None:
    """A page or a record that somebody put where those of a run belong is theirs, whatever its name.

    Raises:
        OtherRunError: There is such a file; it stays as it is.
    """
    for name, (is_ours, what) in _RECOGNISED.items() if (path / RUN_FILE).is_file() else ():
        file = path / name
        content = _content(file) if file.is_file() else b""
        if os.path.lexists(file) and not is_ours(content) and (content or not file.is_file()):
            raise OtherRunError(
                f"{file} is not {what} of crossgraft, and lies where the run writes one, so that it is not replaced, whatever is "
                "asked. Move it, or choose another --out."
            )


def refuse_unrecognised(name: str, content: str) -> None:
    """Look whether the next run in this folder would take a file for that of somebody else.

    Raises:
        TypeError: It would: an error of the plug-in that writes it.
    """
    is_ours, what = _RECOGNISED.get(name, (None, ""))
    if is_ours is not None and not is_ours(content.encode()):
        raise TypeError(
            f"{name} is not {what} of crossgraft, so the run could not be gone on with. The first fields of its record are "
            "schema_version: int = SCHEMA_VERSION and kind."
        )


def is_page(content: bytes) -> bool:
    """Whether this is the content of a page, or its beginning."""
    return b'<meta name="generator" content="crossgraft ' in content[:_BEGINNING]


def _is_record(content: bytes) -> bool:
    if _BEGINS_LIKE_A_RECORD.match(content):
        return True
    try:
        parsed: object = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(parsed, dict) and isinstance(parsed.get("schema_version"), int) and "kind" in parsed


_BEGINS_LIKE_A_RECORD = re.compile(rb'\s*\{\s*"schema_version":\s*\d+,\s*"kind":')
"""Nearly all records, which may be long, so that few are parsed."""
_BEGINNING = 2000
_RECOGNISED = {"report.html": (is_page, "a page"), "report.json": (_is_record, "a record"), "split.json": (_is_record, "a split")}


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise StorageError(f"Cannot read {file}: {describe_os_error(error)}. Move it, or choose another --out.") from error


def refuse_strange_folder(path: Path) -> None:
    """Look before anything is written into a folder.

    A run makes no links, so one in its folder was put there, and what is written through it would land elsewhere.

    Raises:
        OtherRunError: It holds files, and none that a run begins with; nothing is looked for below it.
        DataError: A folder in it is a symbolic link.
    """
    if _is_of_others(path):
        raise no_run(path)
    for parent, folders, files in os.walk(path):
        lock = [".lock"] if Path(parent) == path and ".lock" in files else []
        for name in (*folders, *lock):
            if Path(parent, name).is_symlink():
                raise DataError(
                    f"{shortened(str(Path(parent, name)))} is a symbolic link. A run writes and removes files in its folder, "
                    "which would be those that the link leads to. Remove the link, or choose another --out."
                )


def is_of_a_beginning(name: str) -> bool:
    """Whether a run leaves a file of this name that is stopped before its first ``run.json``: disk full, power cut."""
    return name in (".lock", WRITTEN, UNFINISHED) or name.startswith((f".{WRITTEN}.", ".run.json."))


def no_run(path: Path) -> OtherRunError:
    """The error for a folder of somebody else."""
    return OtherRunError(f"{path} holds files that are not a crossgraft run. Choose an empty folder with --out.")


def _is_of_others(path: Path) -> bool:
    """Whether a folder holds files, and none that a run begins with."""
    try:
        names = {entry.name for entry in path.iterdir()}
    except OSError:  # nothing is there, or what is there says so itself when it is written to
        return False
    return not names & {RUN_FILE, WRITTEN, BEFORE, UNFINISHED} and not all(map(is_of_a_beginning, names))


def is_without_result(path: Path, record: RunRecord) -> bool:
    """Whether the run stopped before it wrote anything that could be gone on with, for example at a typo."""
    names = {entry.name for entry in path.iterdir()}
    return record.state != "done" and names <= {".lock", WRITTEN, RUN_FILE, BEFORE, UNFINISHED}


NO_INPUTS = ("out", "cache_dir")
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
    target = real_path(out)
    is_file = target.is_file()
    if not is_file and not any((target / name).is_file() for name in (RUN_FILE, _EXPORT_FILE)):
        return
    for name, value in given.items():
        for path in () if name in NO_INPUTS else paths_in(value):
            if not real_path(path).is_relative_to(target) or not os.path.lexists(path):
                continue
            if name in words and not Path(path).is_file():
                continue
            if is_file:
                raise UsageError(f"{out} is read by this command ({name}), which would replace it. Choose another --out.")
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
    target = real_path(file)
    for folder in target.parents if target.is_file() else ():
        if (folder / RUN_FILE).is_file() and (but is None or folder != real_path(but)):
            name = target.relative_to(folder).as_posix()
            if any(name == own or (own.endswith("/") and name.startswith(own)) for own in (*written_in(folder), RUN_FILE)):
                raise OtherRunError(f"{file} belongs to the run in {folder}, and stays as it is. Choose another --out.")


def paths_in(value: object) -> Iterator[str]:
    """Everything in a value that may be a path; ``zoo.yaml:model``, ``a,b`` and ``name:file=a`` hold some."""
    if isinstance(value, list | tuple | set):
        for item in cast("Sequence[object]", value):
            yield from paths_in(item)
    elif isinstance(value, str | os.PathLike):
        text = os.fspath(cast("str | os.PathLike[str]", value))
        yield text
        for separators in (",", ",:=", ":="):
            yield from (part for part in re.split(f"[{separators}]", text) if part and part != text)
    elif isinstance(folder := getattr(value, "out", None), Path):
        yield str(folder)
