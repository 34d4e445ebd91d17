"""A CSV or TSV table, one row per image: path, label, and perhaps split, group (patient), attributes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, cast

import numpy as np

from crossgraft.data._groups import NO_GROUPS, PATH_GROUPS, groups_from_paths, is_group_name, refuse_missing_groups
from crossgraft.data.cells import attribute_values, is_empty
from crossgraft.data.sources._image_files import rows_of_files
from crossgraft.data.sources._labels import (
    LABEL_COLUMNS,
    RARER_LABEL_COLUMNS,
    SPLIT_COLUMNS,
    SourceLabels,
    certain_rows,
    indicator,
    is_one_hot,
    known_labels,
    label_set_from_cells,
    label_set_from_numbers,
    labels_from_text,
    left_out_notices,
    numbers_in_columns,
    one_class_each,
    refuse_none_label,
    separator_notices,
)
from crossgraft.data.sources._source import DataSource, SourceRequest, SourceRows, canonical_split, refuse_missing_split
from crossgraft.data.sources._table import (
    TABLE_EXTENSIONS,
    TextTable,
    find_column,
    find_group_column,
    read_table,
    require_column,
    require_path_column,
)
from crossgraft.data.sources._table_files import (
    NOT_COUNTED,
    count_folder,
    describes_its_folder,
    find_image_files,
    is_described_by_a_table,
    labels_beside,
    read_folder,
)
from crossgraft.errors import DataError, UsageError
from crossgraft.options._values import _is_frame

if TYPE_CHECKING:
    import pandas as pd


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
    lists = [row for row, cell in enumerate(cells) if cell.startswith(("[", "{"))]
    if lists and table.name.casefold().endswith(".jsonl"):
        raise DataError(
            f"The label in {table.row_name(lists[0])} is {cells[lists[0]]}, a list or an object. Write a name; or several "
            "names in one text, such as \"a|b\", and say --label-separator '|'."
        )
    notices = separator_notices(cells, column)
    if notices and "" in cells:
        raise DataError(
            f"The label is missing in {table.row_name(cells.index(''))}. {notices[0]} A blank cell then means: no label."
        )
    return SourceLabels(labels_from_text(cells, where=f"column {column}", row_name=table.row_name), None, notices)


class CsvTable(DataSource):
    """Columns are recognised by their usual names, or named by the user."""

    name = "csv_table"
    description = (
        "a .csv, .tsv or .jsonl table with the columns path and label, and perhaps split, patient and attributes; or a folder of "
        "images with such a table, called metadata or labels, beside them"
    )

    def accepts(self, location: str) -> bool:
        """Any existing file with the extension ``.csv``, ``.tsv`` or ``.jsonl``, or a folder that such a file describes."""
        path = Path(location)
        return (path.suffix.casefold() in TABLE_EXTENSIONS and path.is_file()) or is_described_by_a_table(path)

    def open(self, location: str, request: SourceRequest) -> SourceRows:
        """Read the table, keep the rows of the split, then check those rows and nothing else."""
        path = Path(location)
        is_folder = path.is_dir()
        table = read_folder(path, request.path_column) if is_folder else read_table(path)
        folder = path if is_folder else path.parent
        labels = labels_beside(folder)
        if not request.label_columns and _find_label_column(table) is None and labels and set(labels) <= set(table.columns):
            request = replace(request, label_columns=labels, several_labels=True)
        name = path.resolve().name if is_folder else _table_name(path)
        if not is_folder:
            describes = request.image_root is None and describes_its_folder(path)
            return rows_of_table(table, request, folder=folder, name=name, name_without_labels=path.stem, is_of_folder=describes)
        rows = rows_of_table(table, request, folder=folder, name=name, name_without_labels=name, is_of_folder=True)
        notice = f"What is known of the images in the folder is read from {table.name} beside them."
        return replace(rows, reading=(notice, *rows.reading))


def rows_of_table(
    table: TextTable, request: SourceRequest, *, folder: Path, name: str, name_without_labels: str, is_of_folder: bool = False
) -> SourceRows:
    """Keep the rows of the split, then check those rows and nothing else.

    Args:
        table: All rows.
        request: What the user asked for.
        folder: Folder that paths start from where the request names none.
        name: Name of the data.
        name_without_labels: Their name where no labels are needed and the table has none.
        is_of_folder: Whether ``folder`` as a whole is what the table describes, so that its other files are counted.

    Raises:
        DataError: A column or an image file is missing, or a cell cannot be.
    """
    if not request.needs_labels:
        request = _with_known_labels(table, request)
        lacking = request.may_lack_labels and not set(request.label_columns) & set(table.columns)
        if lacking or (not request.label_columns and _find_label_column(table, RARER_LABEL_COLUMNS) is None):
            path = require_path_column(table, request.path_column)
            files, names, path_notices = _image_files(table, path, folder, request)
            counted = count_folder(folder, files, table.name) if is_of_folder else NOT_COUNTED
            note = (f"{table.name} has no column {' or '.join(request.label_columns)}: nothing is measured.",) if lacking else ()
            return rows_of_files(
                files,
                names,
                request,
                name=name_without_labels,
                labels=None,
                notices=(*counted.notices, *path_notices, *note),
                passed_over=counted.passed_over,
                tables=counted.tables,
            )
    split = find_column(table, None, kind="splits", usual_names=SPLIT_COLUMNS, choose="Rename all but one.")
    split_names = () if split is None else tuple(sorted(set(map(canonical_split, table.column(split)))))
    whole, (table, splits) = table, _keep_split(table, split, request.use_split)
    columns = _TableColumns(table, request, split)
    one_hot = not request.means_several_labels and is_one_hot([table.column(column) for column in columns.labels])
    kept = rows_to_keep(table, columns.labels, request)
    left_out = left_out_notices(len(kept), len(table.rows))
    part, table, splits = table, table.keep(kept.tolist()), None if splits is None else splits[kept]
    files, names, path_notices = _image_files(table, columns.path, folder, request)
    all_paths, of_part, used = (set(subset.column(columns.path)) for subset in (whole, part, table))
    counted = (
        count_folder(folder, files, table.name, left_out=of_part - used, of_other_parts=all_paths - of_part)
        if is_of_folder
        else NOT_COUNTED
    )
    labels = one_class_of_each(table, columns.labels) if one_hot else labels_of_table(table, columns.labels, request)
    notices = (*counted.notices, *path_notices, *left_out, *labels.notices)
    return rows_of_files(
        files,
        names,
        request,
        name=name,
        labels=labels.values,
        label_names=labels.names,
        splits=splits,
        split_names=split_names,
        split_method="no split" if split is None else f"column {split} of the table",
        groups=_groups(table, columns, request),
        group_column=columns.group if request.group_from is None else PATH_GROUPS,
        attributes={name: attribute_values(table.column(name)) for name in columns.attributes},
        notices=notices,
        passed_over=counted.passed_over,
        tables=counted.tables,
    )


class _TableColumns:
    """Which column holds what."""

    def __init__(self, table: TextTable, request: SourceRequest, split: str | None) -> None:
        self.path = require_path_column(table, request.path_column)
        self.labels = _label_columns(table, request)
        by_path = request.group_from is not None
        wanted = NO_GROUPS if by_path else request.group_column
        self.group = find_group_column(table, wanted, taken=(self.path, *self.labels))
        taken = (self.path, *self.labels, self.group, split)
        self.attributes = [name for name in table.columns if name not in taken]


def _label_columns(table: TextTable, request: SourceRequest) -> list[str]:
    """The columns that were named, one with a usual name, or all that together say one class of each image."""
    if not request.label_columns and _find_label_column(table) is None and (indicators := _indicators(table, request)):
        return indicators
    choose = "Name it with --label-column; several, with commas, are one label each."
    return [
        require_column(table, wanted, kind="labels", usual_names=LABEL_COLUMNS, choose=choose, rarer_names=RARER_LABEL_COLUMNS)
        for wanted in request.label_columns or (None,)
    ]


def _indicators(table: TextTable, request: SourceRequest) -> list[str]:
    """The columns of 0 and 1, if each row has exactly one 1 in them, as in the tables of ISIC."""
    path = require_path_column(table, request.path_column)
    others = [name for name in table.columns if name not in (path, request.group_column) and not is_group_name(name)]
    binary = [name for name in others if all(indicator(cell) in (0, 1) for cell in table.column(name))]
    return binary if is_one_hot([table.column(name) for name in binary]) else []


def _find_label_column(table: TextTable, rarer_names: Sequence[str] = ()) -> str | None:
    choose = "Name it with --label-column."
    return find_column(table, None, kind="labels", usual_names=LABEL_COLUMNS, choose=choose, rarer_names=rarer_names)


def _with_known_labels(table: TextTable, request: SourceRequest) -> SourceRequest:
    """Ask for one column per label where the table has them all and the user named none."""
    wanted = request.several_labels and not request.label_columns and set(request.known_classes) <= set(table.columns)
    return replace(request, label_columns=request.known_classes) if wanted else request


def _image_files(
    table: TextTable, column: str, folder: Path, request: SourceRequest
) -> tuple[list[Path], list[str], tuple[str, ...]]:
    """The file that each row names, how it is shown, and notices."""
    root = request.image_root if request.image_root is not None else folder
    cells = table.column(column)
    image_files = find_image_files(cells, root, allow_outside=request.allow_outside, row_name=table.row_name)
    return image_files.files, [_display_name(cell) for cell in cells], image_files.notices


def _keep_split(table: TextTable, column: str | None, use_split: str | None) -> tuple[TextTable, np.ndarray | None]:
    """The rows of one split (all rows if there are no splits), and the split of each."""
    if column is None:
        if use_split not in (None, "train"):
            refuse_missing_split(use_split, [], f"The table {table.name}")
        return table, None
    splits = [canonical_split(cell) for cell in table.column(column)]
    unnamed = [row for row, split in enumerate(splits) if is_empty(split)]
    if unnamed:
        raise DataError(f"The split is missing in {table.row_name(unnamed[0])} (column {column}). Fill it in.")
    if use_split is None:
        return table, np.asarray(splits)
    refuse_missing_split(use_split, splits, f"The table {table.name}")
    rows = [row for row, split in enumerate(splits) if split == use_split]
    return table.keep(rows), np.asarray([use_split] * len(rows))


def _groups(table: TextTable, columns: _TableColumns, request: SourceRequest) -> np.ndarray | None:
    if columns.group is None:
        return groups_from_paths([cell.replace("\\", "/") for cell in table.column(columns.path)], request.group_from)
    groups = table.column(columns.group)
    refuse_missing_groups(groups, where=f"column {columns.group}", row_name=table.row_name)
    return np.asarray(groups)


_NAMES_THAT_SAY_NOTHING = ("metadata", "labels", "table", "index", "data", "dataset", "images")


def _table_name(path: Path) -> str:
    """The name of the table, or of its folder where every table is called so."""
    folder = path.resolve().parent.name
    return folder if path.stem.casefold() in _NAMES_THAT_SAY_NOTHING and folder else path.stem


def _display_name(cell: str) -> str:
    """The cell, or the file name alone where the cell is an absolute path."""
    path = PureWindowsPath(cell)
    return path.name if path.drive or path.root else cell


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
        DataError: A file, a column or the labels are missing.
    """
    if _is_frame(data):
        table, name = _table_of_frame(data), "table"
    elif request.needs_labels:
        raise DataError(
            "A list of files has no labels. Give a folder with a folder for each class, or a DataFrame with the columns path and "
            "label."
        )
    else:
        files = [os.fspath(cast("str | os.PathLike[str]", path)) for path in cast("Sequence[object]", data)]
        rows = tuple((file,) for file in files)
        table, name = _GivenTable("list of files", ("path",), rows, tuple(range(len(rows)))), "files"
        request = replace(request, allow_outside=True)
    return rows_of_table(table, request, folder=Path(), name=name, name_without_labels=name)


def _table_of_frame(frame: pd.DataFrame) -> TextTable:
    columns = tuple(map(str, frame.columns))
    if frame.empty or len(set(columns)) < len(columns):
        what = "has no rows" if frame.empty else "has several columns of one name"
        raise DataError(f"The DataFrame {what}. Give one row per image, and each column a name of its own.")
    cells = zip(*(_as_text(frame.iloc[:, column]) for column in range(len(columns))), strict=True)
    return _GivenTable("DataFrame", columns, tuple(cells), tuple(range(len(frame))))


def _as_text(column: pd.Series) -> list[str]:
    """As a CSV file would hold it: nothing where a value is missing, and whole numbers without a point."""
    values = column
    if values.dtype.kind == "f" and bool((values.dropna() % 1 == 0).all()):
        values = values.astype("Int64")
    missing = values.isna().tolist()
    return ["" if none else str(value).strip() for value, none in zip(values.tolist(), missing, strict=True)]
