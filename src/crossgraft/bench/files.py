"""What the files are that a job reads: so that a study notices when others lie there under the same names.

A file is known by its *stamp* (size and time of its last change) and by its *content*; the stamp is looked at for every job, the
content is read once a study for each stamp and number in the file system, by a process that leaves a note for the others in
``prints``. Another machine may have other times: only what differs in its content has changed.
"""

from __future__ import annotations

import csv
import hashlib
import os
import re
import stat
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from filelock import FileLock, Timeout

from crossgraft.config import config_hash, parse_yaml
from crossgraft.errors import StorageError
from crossgraft.running.written_files import RUN_FILE
from crossgraft.storage.atomic import write_atomically

Prints = Mapping[str, Mapping[str, str]]
"""Hash of a path as it was written → ``stamp`` and ``content`` of what lay there; no file is to hold the path itself."""

PRINTS = "prints"
"""Folder of the notes in that of a study."""
MOST_WAITING_SECONDS = 600
"""For another process that reads the same files."""

_HASH = re.compile(r"[0-9a-f]+")
_READ_WHOLE = 64 * 2**20
_PART, _PARTS = 256 * 2**10, 64
"""A larger file is read in so many parts of so many bytes, the first and the last among them."""

_TABLES, _ZOOS = (".csv", ".tsv"), (".yaml", ".yml")
_NOT_READ = ("report.html", RUN_FILE, "__pycache__")
"""What a run folder, which may be a model, has new whenever its page is."""


@dataclass
class FilePrints:
    """Looks at files, and remembers what it saw.

    Args:
        but: Folder of the study, which may lie in that of the data, and has the notes.
    """

    but: Path
    _contents: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _named: dict[tuple[str, int, int], Sequence[str]] = field(default_factory=dict[tuple[str, int, int], Sequence[str]])

    def of(self, names: Sequence[str]) -> Prints:
        """Stamps and contents of those names that lead to something.

        Cost:
            A look at each file; once in a study for each stamp its content: all of up to 64 MiB, 16 MiB of a larger one.
        """
        prints: dict[str, dict[str, str]] = {}
        for name in names:
            if (stamp := self.stamp(name)) is not None:
                prints[path_hash(name)] = {"stamp": stamp, "content": self.content(name, stamp)}
        return prints

    def stamp(self, name: str) -> str | None:
        """Sizes and times of all files there; None where there are none."""
        facts = [(shown, status.st_size, status.st_mtime_ns) for shown, _, status in self._files(name)]
        return config_hash({"files": facts}) if facts else None

    def content(self, name: str, stamp: str) -> str:
        """A hash of all files there, with their names below ``name``; read by one process of a study while others wait."""
        known = self._contents.get((name, stamp))
        if known is None:
            files = list(self._files(name))
            numbers = [(shown, status.st_size, status.st_mtime_ns, status.st_ino) for shown, _, status in files]
            note = self.but / PRINTS / config_hash({"path": str(Path(name).absolute()), "files": numbers})
            with _alone(note):
                known = _noted(note)
                if known is None:
                    known = config_hash({"files": [(shown, _content(file, status.st_size)) for shown, file, status in files]})
                    with suppress(OSError, StorageError):  # the others read the files themselves
                        write_atomically(note, known)
            self._contents[name, stamp] = known
        return known

    def _files(self, name: str) -> Iterator[tuple[str, str, os.stat_result]]:
        """Every regular file: its name below ``name``, its path, its status; those that a table or a zoo file names, too."""
        status = _status(Path(name))
        if status is None:
            return
        if stat.S_ISDIR(status.st_mode):
            yield from self._below(name, "", set())
        elif stat.S_ISREG(status.st_mode):
            yield "", name, status
            key = name, status.st_size, status.st_mtime_ns
            if key not in self._named:
                self._named[key] = sorted(_named_in(Path(name)))
            for other in self._named[key]:
                found = _status(Path(name).parent / other)
                if found is not None and stat.S_ISREG(found.st_mode):
                    yield other, str(Path(name).parent / other), found

    def _below(self, folder: str, shown: str, seen: set[tuple[int, int]]) -> Iterator[tuple[str, str, os.stat_result]]:
        """All files in a folder, through links, each folder once; hidden ones are nobody's data."""
        status = _status(Path(folder))
        if status is None or (status.st_dev, status.st_ino) in seen or os.path.realpath(folder) == os.path.realpath(self.but):
            return
        seen.add((status.st_dev, status.st_ino))
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:  # whoever reads it says so
            return
        for entry in entries:
            if entry.name.startswith(".") or entry.name in _NOT_READ or (found := _status(entry)) is None:
                continue
            if stat.S_ISDIR(found.st_mode):
                yield from self._below(entry.path, f"{shown}{entry.name}/", seen)
            elif stat.S_ISREG(found.st_mode):
                yield f"{shown}{entry.name}", entry.path, found


@contextmanager
def _alone(note: Path) -> Generator[None]:
    """While no other process is inside; where that cannot be had, all the same."""
    lock = FileLock(f"{note}.lock", timeout=MOST_WAITING_SECONDS)
    try:
        note.parent.mkdir(exist_ok=True)
        lock.acquire()
    except (OSError, Timeout, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


def _noted(note: Path) -> str | None:
    """What another process found."""
    with suppress(OSError, ValueError):
        text = note.read_text(encoding="ascii")
        return text if _HASH.fullmatch(text) else None
    return None


def have_changed(before: Prints, now: Prints) -> bool:
    """Whether something else lies under one of the same names; what is gone is not known to have changed."""
    both = before.keys() & now.keys()
    return any(before[name]["content"] != now[name]["content"] for name in both)


def path_hash(name: str) -> str:
    """What stands for a path in a file."""
    return config_hash({"path": name})


def _status(place: Path | os.DirEntry[str]) -> os.stat_result | None:
    try:
        return place.stat()
    except (OSError, ValueError):
        return None


def _content(file: str, size: int) -> str:
    try:
        with Path(file).open("rb") as opened:
            if size <= _READ_WHOLE:
                return hashlib.file_digest(opened, "sha256").hexdigest()
            digest = hashlib.sha256(str(size).encode())
            for part in range(_PARTS):
                opened.seek(part * (size - _PART) // (_PARTS - 1))
                digest.update(opened.read(_PART))
            return digest.hexdigest()
    except OSError:
        return "unreadable"


def _named_in(file: Path) -> set[str]:
    """What a table or a zoo file may name beside it."""
    try:
        if file.suffix.lower() in _TABLES:
            with file.open(encoding="utf-8", newline="") as opened:
                rows = csv.reader(opened, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
                return {cell for row in rows for cell in row if "." in cell}
        if file.suffix.lower() in _ZOOS:
            return {text for text in _texts(parse_yaml(file.read_text(encoding="utf-8"))) if "." in text}
    except (OSError, ValueError, csv.Error):  # whoever opens it says so
        pass
    return set()


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in cast("dict[object, object]", value).values():
            yield from _texts(item)
