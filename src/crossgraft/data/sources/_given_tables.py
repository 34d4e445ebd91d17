"""Tables that a program has in memory: a pandas DataFrame, or a plain list of image files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from crossgraft.data.sources._source import SourceRequest, SourceRows
from crossgraft.data.sources._table import TextTable
from crossgraft.data.sources.csv_table import rows_of_table
from crossgraft.errors import DataError
from crossgraft.options.given_data import _is_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class _GivenTable(TextTable):
    """Its rows have no lines; ``name`` says what it is."""

    def row_name(self, row: int) -> str:
        return f"row {self.line_numbers[row]} of the {self.name}"


def rows_of_given(data: object, request: SourceRequest) -> SourceRows:
    """The rows of what ``given_kind`` knows. Paths start from the current folder where the request names no other.

    Who lists files in a program means these files, wherever they are; a column of a table may have come from anywhere, and is
    kept to the folder as that of a file is.

    Raises:
        DataError: A file or a column is missing.
    """
    if _is_frame(data):
        table, name = _table_of_frame(data), "table"
    else:
        files = [os.fspath(cast("str | os.PathLike[str]", each)) for each in cast("Sequence[object]", data)]
        rows = tuple((file,) for file in files)
        table, name = _GivenTable("list of files", ("path",), rows, tuple(range(len(rows)))), "files"
        request = replace(request, allow_outside=True)
    return rows_of_table(table, request, folder=Path(), name=name, name_without_labels=name)


def _table_of_frame(frame: pd.DataFrame) -> TextTable:
    columns = tuple(map(str, frame.columns))
    if frame.empty or len(set(columns)) < len(columns):
        what = "has no rows" if frame.empty else "has several columns of one name"
        raise DataError(f"The DataFrame {what}. Give one row per image, and each column a name of its own.")
    cells = zip(*(_as_text(frame.iloc[:, place]) for place in range(len(columns))), strict=True)
    return _GivenTable("DataFrame", columns, tuple(cells), tuple(range(len(frame))))


def _as_text(column: pd.Series) -> list[str]:
    """As a CSV file would hold it: nothing where a value is missing, and whole numbers without a point."""
    values = column
    if values.dtype.kind == "f" and bool((values.dropna() % 1 == 0).all()):
        values = values.astype("Int64")
    missing = values.isna().tolist()
    return ["" if none else str(value).strip() for value, none in zip(values.tolist(), missing, strict=True)]
