"""A CSV or TSV table, one row per image: path, label, and perhaps split, group (patient), attributes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np

from crossgraft.data._groups import refuse_missing_groups
from crossgraft.data.sources._column_names import LABEL_COLUMNS, PATH_COLUMNS, SPLIT_COLUMNS
from crossgraft.data.sources._image_files import rows_of_files
from crossgraft.data.sources._label_sets import label_set_from_cells, label_set_from_columns, separator_notices
from crossgraft.data.sources._labels import labels_from_text
from crossgraft.data.sources._source import DataSource, SourceRequest, SourceRows
from crossgraft.data.sources._split_names import canonical_split, refuse_missing_split
from crossgraft.data.sources._table import TextTable, find_column, find_group_column, read_table, require_column
from crossgraft.data.sources._table_files import find_image_files
from crossgraft.errors import DataError, UsageError

_NAMES_THAT_SAY_NOTHING = ("metadata", "labels", "table", "index", "data", "dataset", "images")


class CsvTable(DataSource):
    """Columns are recognised by their usual names, or named by the user."""

    name = "csv_table"
    description = "a .csv or .tsv table with the columns path and label, and perhaps split, patient and attributes"

    def accepts(self, location: str) -> bool:
        """Any existing file with the extension ``.csv`` or ``.tsv``."""
        path = Path(location)
        return path.suffix.casefold() in (".csv", ".tsv") and path.is_file()

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """Read the table, keep the rows of the split, then check those rows and nothing else."""
        path = Path(location)
        return rows_of_table(
            read_table(path), request, folder=path.parent, name=_table_name(path), name_without_labels=path.stem
        )


def rows_of_table(
    table: TextTable, request: SourceRequest, *, folder: Path, name: str, name_without_labels: str
) -> SourceRows:
    """Keep the rows of the split, then check those rows and nothing else.

    Args:
        table: All rows.
        request: What the user asked for.
        folder: Folder that paths start from where the request names none.
        name: Name of the data.
        name_without_labels: Their name where no labels are needed and the table has none.

    Raises:
        DataError: A column or an image file is missing, or a cell cannot be.
    """
    if not request.needs_labels:
        request = _with_known_labels(table, request)
        lacking = request.may_lack_labels and not set(request.label_columns) & set(table.columns)
        if lacking or (not request.label_columns and _find_label_column(table) is None):
            files, names = _image_files(table, _path_column(table, request), folder, request)
            said = (
                (f"{table.name} has no column {' or '.join(request.label_columns)}: nothing is measured.",)
                if lacking
                else ()
            )
            return rows_of_files(files, names, request, name=name_without_labels, labels=None, notices=said)
    columns = _TableColumns(table, request)
    split_names = () if columns.split is None else tuple(sorted(set(map(canonical_split, table.column(columns.split)))))
    table, splits = _keep_split(table, columns.split, request.use_split)
    files, names = _image_files(table, columns.path, folder, request)
    labels, label_names, notices = _labels(table, columns.labels, request.label_separator)
    return rows_of_files(
        files,
        names,
        request,
        name=name,
        labels=labels,
        label_names=label_names,
        splits=splits,
        split_names=split_names,
        split_method="no split" if columns.split is None else f"column {columns.split} of the table",
        groups=None if columns.group is None else _groups(table, columns.group),
        group_column=columns.group,
        attributes={name: _attribute(table.column(name)) for name in columns.attributes},
        notices=notices,
    )


class _TableColumns:
    """Which column holds what."""

    def __init__(self, table: TextTable, request: SourceRequest) -> None:
        self.path = _path_column(table, request)
        self.labels = [
            require_column(
                table, wanted, kind="labels", usual_names=LABEL_COLUMNS, choose="Name it with --label-column."
            )
            for wanted in request.label_columns or (None,)
        ]
        self.group = find_group_column(table, request.group_column, taken=(self.path, *self.labels))
        self.split = find_column(table, None, kind="splits", usual_names=SPLIT_COLUMNS, choose="Rename all but one.")
        taken = (self.path, *self.labels, self.group, self.split)
        self.attributes = [name for name in table.columns if name not in taken]


def _path_column(table: TextTable, request: SourceRequest) -> str:
    choose = "Name it with --path-column."
    return require_column(table, request.path_column, kind="image files", usual_names=PATH_COLUMNS, choose=choose)


def _find_label_column(table: TextTable) -> str | None:
    return find_column(table, None, kind="labels", usual_names=LABEL_COLUMNS, choose="Name it with --label-column.")


def _with_known_labels(table: TextTable, request: SourceRequest) -> SourceRequest:
    """Ask for one column per label where the table has them all and the user named none."""
    wanted = request.several_labels and not request.label_columns and set(request.known_classes) <= set(table.columns)
    return replace(request, label_columns=request.known_classes) if wanted else request


def _image_files(table: TextTable, column: str, folder: Path, request: SourceRequest) -> tuple[list[Path], list[str]]:
    """The file that each row names, and how it is shown."""
    root = request.image_root if request.image_root is not None else folder
    cells = table.column(column)
    files = find_image_files(cells, root, allow_outside=request.allow_outside, row_name=table.row_name)
    return files, [_display_name(cell) for cell in cells]


def _keep_split(table: TextTable, column: str | None, use_split: str | None) -> tuple[TextTable, np.ndarray | None]:
    """The rows of one split (all rows if there are no splits), and the split of each."""
    if column is None:
        if use_split not in (None, "train"):
            refuse_missing_split(use_split, [], f"The table {table.name}")
        return table, None
    splits = [canonical_split(cell) for cell in table.column(column)]
    unnamed = [row for row, split in enumerate(splits) if not split]
    if unnamed:
        raise DataError(f"The split is missing in {table.row_name(unnamed[0])} (column {column}). Fill it in.")
    if use_split is None:
        return table, np.asarray(splits)
    refuse_missing_split(use_split, splits, f"The table {table.name}")
    rows = [row for row, split in enumerate(splits) if split == use_split]
    return table.keep(rows), np.asarray([use_split] * len(rows))


def _labels(
    table: TextTable, columns: Sequence[str], separator: str | None
) -> tuple[np.ndarray, tuple[str, ...] | None, tuple[str, ...]]:
    """Labels, their names where an image may have several, and notices."""
    if len(columns) > 1:
        if separator is not None:
            raise UsageError(
                "--label-separator is for several labels in one cell, but --label-column names several columns. Give one of "
                "the two."
            )
        if len(set(columns)) < len(columns):
            raise UsageError(f"--label-column names a column twice: {', '.join(columns)}.")
        cells = [table.column(column) for column in columns]
        return label_set_from_columns(cells, columns, row_name=table.row_name), tuple(columns), ()
    (column,) = columns
    if separator is not None:
        return *label_set_from_cells(table.column(column), separator), ()
    cells = table.column(column)
    notices = separator_notices(cells, column)
    if notices and "" in cells:
        raise DataError(
            f"The label is missing in {table.row_name(cells.index(''))}. {notices[0]} A blank cell then means: no label."
        )
    return labels_from_text(cells, where=f"column {column}", row_name=table.row_name), None, notices


def _groups(table: TextTable, column: str) -> np.ndarray:
    groups = table.column(column)
    refuse_missing_groups(groups, where=f"column {column}", row_name=table.row_name)
    return np.asarray(groups)


def _attribute(cells: list[str]) -> np.ndarray:
    """Numbers (empty cells become NaN) where all cells are, text otherwise."""
    try:
        return np.asarray([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        return np.asarray(cells)


def _table_name(path: Path) -> str:
    """The name of the table, or of its folder where every table is called so."""
    folder = path.resolve().parent.name
    return folder if path.stem.casefold() in _NAMES_THAT_SAY_NOTHING and folder else path.stem


def _display_name(cell: str) -> str:
    """The cell, or the file name alone where the cell is an absolute path."""
    path = PurePath(cell.replace("\\", "/"))
    return path.name if path.is_absolute() else cell
