"""Some texts of each record of a large file of JSON lines, kept beside it, so that a look-up reads few lines.

The file stays the truth: what the index was made of is known by its hash, so lines that were added since are read and added, and
whatever else was done to the file (by hand, by another program, cut off) makes the index anew. Without one, because it was
deleted, is damaged, or cannot be written, everything is the same but slower. Two processes at once each write a whole one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from crossgraft.errors import DataError, StorageError
from crossgraft.paths import read_whole
from crossgraft.records.base import Record
from crossgraft.running.json_lines import JsonLines
from crossgraft.storage.atomic import write_atomically
from crossgraft.version import __version__

LEAST_BYTES = 1 << 20
"""A file of less is read as quickly as an index."""
RowT = TypeVar("RowT", bound=Record)


@dataclass(frozen=True, eq=False)
class IndexedLines(Generic[RowT]):
    """All records of a file, of which each is read when it is asked for.

    Attributes:
        columns: By name, the text of each record, oldest first.
        kind: What a line is.
        data: The file.
    """

    columns: Mapping[str, Sequence[str]]
    kind: type[RowT]
    data: bytes

    def record(self, place: int) -> RowT:
        """One record, by its place from 0."""
        return self.kind.model_validate_json(self._lines[place])

    @cached_property
    def _lines(self) -> list[str]:
        return [line for line in self.data.decode("utf-8").split("\n") if line.strip()]


@dataclass(frozen=True)
class LineIndex(Generic[RowT]):
    """How one kind of such files is indexed.

    Attributes:
        lines: The kind of file.
        names: Names of the columns.
        texts: The texts of a record, one of each column.
        least_bytes: Size of the smallest file that has an index.
    """

    lines: JsonLines[RowT]
    names: tuple[str, ...]
    texts: Callable[[RowT], tuple[str, ...]]
    least_bytes: int = LEAST_BYTES

    def read(self, path: Path) -> IndexedLines[RowT]:
        """Columns of all records; no record where the file is not there yet.

        Raises:
            DataError: A line is damaged or of a newer crossgraft; the message names file and line.
        """
        data = self.lines.data(path)
        whole = data.rfind(b"\n") + 1  # what stands behind the last line break may not be a whole line yet
        if len(data) < self.least_bytes:
            num_bytes, columns = 0, [[] for _ in self.names]
        else:
            num_bytes, columns = self._indexed(path, data, whole)
        if num_bytes < len(data):
            rows = self._rows(path, data, num_bytes, len(data))
            columns = self._with(columns, rows)
        return IndexedLines(dict(zip(self.names, columns, strict=True)), self.lines.kind, data)

    def _indexed(self, path: Path, data: bytes, whole: int) -> tuple[int, list[list[str]]]:
        """The first bytes of the file of which there is an index now, and their columns."""
        beside = path.with_name(f".{path.name}.index")
        num_bytes, columns = self._kept(beside, data)
        if num_bytes < whole:
            rows = self._rows(path, data, num_bytes, whole)
            columns = self._with(columns, rows)
            self._keep(beside, data[:whole], columns)
        return whole, columns

    def _rows(self, path: Path, data: bytes, begin: int, end: int) -> list[RowT]:
        """The records of a part of the file; what is wrong is said as of the whole."""
        try:
            return self.lines.parse(data[begin:end], path, first=data.count(b"\n", 0, begin) + 1)
        except DataError:
            self.lines.parse(data, path)
            raise

    def _with(self, columns: Sequence[Sequence[str]], rows: Sequence[RowT]) -> list[list[str]]:
        texts = [self.texts(row) for row in rows]
        return [[*column, *(of_row[place] for of_row in texts)] for place, column in enumerate(columns)]

    def _kept(self, beside: Path, data: bytes) -> tuple[int, list[list[str]]]:
        """What the index beside a file holds of it; nothing where it is not about the file as it is now."""
        nothing: tuple[int, list[list[str]]] = (0, [[] for _ in self.names])
        try:
            head, _, body = read_whole(beside).partition(b"\n")
            header = cast("dict[str, Any]", json.loads(head))
            num_bytes, num_rows = int(header["bytes"]), int(header["rows"])
            expected = self._header(data[:num_bytes], body, num_rows) if 0 < num_bytes <= len(data) else None
            texts = body.decode("utf-8").split("\n")
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return nothing
        if header != expected or len(texts) != num_rows * len(self.names):
            return nothing
        return num_bytes, [texts[place * num_rows : (place + 1) * num_rows] for place in range(len(self.names))]

    def _keep(self, beside: Path, data: bytes, columns: Sequence[Sequence[str]]) -> None:
        """Write the index, where that can be done; it holds no text of several lines."""
        num_rows = len(columns[0])
        body = "\n".join(text for column in columns for text in column)
        if not num_rows or body.count("\n") != num_rows * len(columns) - 1:
            return
        encoded = body.encode("utf-8")
        header = json.dumps(self._header(data, encoded, num_rows)).encode("utf-8")
        with contextlib.suppress(StorageError, OSError):
            write_atomically(beside, header + b"\n" + encoded)

    def _header(self, data: bytes, body: bytes, num_rows: int) -> dict[str, object]:
        """What has to be true of an index of ``data``."""
        return {
            "version": __version__,
            "names": list(self.names),
            "bytes": len(data),
            "rows": num_rows,
            "sha256": hashlib.sha256(data).hexdigest(),
            "sha256 of texts": hashlib.sha256(body).hexdigest(),
        }
