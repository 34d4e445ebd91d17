"""A file of the user with one JSON line per record, which several commands may add to at once.

Adding is one atomic replacement under a lock, so that two commands at once lose nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import platformdirs
from filelock import FileLock, Timeout
from pydantic import ValidationError

from crossgraft.errors import DataError, StorageError
from crossgraft.paths import read_whole
from crossgraft.records.base import Record
from crossgraft.storage.atomic import describe_os_error, write_atomically

LOCK_SECONDS = 60.0
_ADVICE = "Allow writing there and free some space, or set CROSSGRAFT_CACHE to another folder."
RowT = TypeVar("RowT", bound=Record)


def user_file(name: str) -> Path:
    """``$CROSSGRAFT_CACHE/name``, or the same name in the user's data folder."""
    stated = os.environ.get("CROSSGRAFT_CACHE")
    return (Path(stated) if stated else platformdirs.user_data_path("crossgraft")) / name


@dataclass(frozen=True)
class JsonLines(Generic[RowT]):
    """One kind of such a file.

    Attributes:
        kind: What a line is.
        what: The whole file in words, with its article.
        one: One line in words, with its article.
        key: What makes two records the same.
        keeps_first: Whether the older of two stays; otherwise the newer one takes its place.
    """

    kind: type[RowT]
    what: str
    one: str
    key: Callable[[RowT], Hashable]
    keeps_first: bool = False

    def read(self, path: Path) -> list[RowT]:
        """Every record, oldest first; none when the file is not there yet.

        Raises:
            DataError: A line is damaged or of a newer crossgraft; the message names file and line.
        """
        return self.parse(self.data(path), path)

    def data(self, path: Path) -> bytes:
        """The whole file; empty when it is not there yet.

        Raises:
            DataError: It cannot be read; the message names it.
        """
        try:
            return read_whole(path)
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise self._unreadable(path, error) from error

    def _unreadable(self, path: Path, error: Exception) -> DataError:
        return DataError(f"Cannot read {self.what} {path}: {error}. Repair the file or move it away.")

    def parse(self, data: bytes, path: Path, *, first: int = 1) -> list[RowT]:
        """The records of some lines of the file, of which the ``first`` has this number in messages; errors as of ``read``."""
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._unreadable(path, error) from error
        rows: list[RowT] = []
        for number, line in enumerate(text.split("\n"), start=first):
            if not line.strip():
                continue
            try:
                rows.append(self.kind.model_validate_json(line))
            except ValidationError as error:
                problem = error.errors(include_url=False, include_input=False)[0]
                raise DataError(
                    f"{path}, line {number} is not {self.one} ({problem['msg']}). Repair the line or move the file away."
                ) from error
        return rows

    def add(self, rows: Iterable[RowT], path: Path) -> list[RowT]:
        """Add records, and return all that the file then holds, oldest first.

        Raises:
            DataError: The file is damaged; it is left as it is.
            StorageError: The file could not be written, or another process holds it for a minute; the old file stays.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(path.with_name(f".{path.name}.lock"), timeout=LOCK_SECONDS):
                merged: dict[Hashable, RowT] = {}
                for row in [*self.read(path), *rows]:
                    key = self.key(row)
                    merged[key] = merged.get(key, row) if self.keeps_first else row
                text = "".join(f"{row.model_dump_json()}\n" for row in merged.values())
                write_atomically(path, text, advice=_ADVICE)
        except Timeout as error:
            raise StorageError(f"Another process has held {path} for a minute. Try again when it is done.") from error
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"Cannot write {path}: {describe_os_error(error)}. {_ADVICE}") from error
        except NotImplementedError as error:  # some network file systems
            raise StorageError(f"Cannot write {path}: its file system has no locks. {_ADVICE}") from error
        return list(merged.values())
