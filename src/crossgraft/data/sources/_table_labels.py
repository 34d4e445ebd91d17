"""Labels of the rows of a table: one column of classes, a cell of several labels, or a column for each label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.data.cells import is_empty
from crossgraft.data.sources._label_sets import (
    certain_rows,
    label_set_from_cells,
    label_set_from_numbers,
    numbers_in_columns,
    one_class_each,
    refuse_none_label,
    separator_notices,
)
from crossgraft.data.sources._labels import SourceLabels, known_labels, labels_from_text
from crossgraft.data.sources._source import SourceRequest
from crossgraft.data.sources._table import TextTable
from crossgraft.errors import DataError, UsageError


def rows_to_keep(table: TextTable, columns: Sequence[str], request: SourceRequest) -> np.ndarray:
    """Rows of the table whose labels are known, or all where none is to be left out."""
    if len(columns) == 1 and request.label_separator is None:
        return known_labels(table.column(columns[0]), request.uncertain)
    if request.uncertain != "leave-out":
        return np.arange(len(table.rows))
    if len(columns) > 1:
        kept = certain_rows(_numbers(table, columns))
    else:
        cells = table.column(columns[0])
        kept = np.asarray([row for row, cell in enumerate(cells) if not cell or not is_empty(cell)], dtype=np.int64)
    if not len(kept):
        raise DataError(f"Every row of {table.name} has an uncertain label, and --uncertain leave-out leaves all out.")
    return kept


def _numbers(table: TextTable, columns: Sequence[str]) -> np.ndarray:
    return numbers_in_columns([table.column(column) for column in columns], columns, row_name=table.row_name)


def one_class_of_each(table: TextTable, columns: Sequence[str]) -> SourceLabels:
    """The column of 0 and 1 that has the 1, of each row."""
    return one_class_each(_numbers(table, columns), columns, table.name)


def labels_of_table(table: TextTable, columns: Sequence[str], request: SourceRequest) -> SourceLabels:
    """The label of each row, or all of them where it has several.

    Raises:
        DataError: A label is missing or no label.
        UsageError: Options contradict each other.
    """
    separator = request.label_separator
    if len(columns) > 1:
        if separator is not None:
            raise UsageError(
                "--label-separator is for several labels in one cell, but --label-column names several columns. Give one of "
                "the two."
            )
        if len(set(columns)) < len(columns):
            raise UsageError(f"--label-column names a column twice: {', '.join(columns)}.")
        return label_set_from_numbers(
            _numbers(table, columns),
            columns,
            uncertain=request.uncertain,
            none_label=request.none_label,
            where="columns",
            row_name=table.row_name,
        )
    (column,) = columns
    cells = table.column(column)
    if separator is not None:
        return label_set_from_cells(cells, separator, none_label=request.none_label, row_name=table.row_name)
    refuse_none_label(request.none_label)
    notices = separator_notices(cells, column)
    if notices and "" in cells:
        raise DataError(
            f"The label is missing in {table.row_name(cells.index(''))}. {notices[0]} A blank cell then means: no label."
        )
    return SourceLabels(labels_from_text(cells, where=f"column {column}", row_name=table.row_name), None, notices)
