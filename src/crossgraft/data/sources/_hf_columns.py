"""From Arrow columns to labels, groups and attributes as numpy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from crossgraft.data._groups import is_group_name, refuse_missing_groups
from crossgraft.data.cells import attribute_values, is_empty
from crossgraft.data.decoding import decode_bytes, decode_file
from crossgraft.data.sources._labels import (
    LABEL_COLUMNS,
    SPLIT_COLUMNS,
    SourceLabels,
    are_one_hot,
    label_set_from_numbers,
    labels_from_numbers,
    labels_from_text,
    one_class_each,
)
from crossgraft.data.sources._source import SourceRequest
from crossgraft.data.sources._table import Header, find_column, find_group_column
from crossgraft.errors import DataError, UnreadableImageError

RowName = Callable[[int], str]

GROUP_KINDS = ("text", "number", "class")
"""Columns that can say whose image it is."""

_LONGEST_ATTRIBUTE = 200
"""Characters; longer text (a report, a caption) is not a property to compare images by."""


def kind_of(feature: Any) -> str:
    """``image``, ``class``, ``text``, ``number``, ``list of …`` (one of these) or ``other``."""
    item = list_item(feature)
    if item is not None:
        return f"list of {kind_of(item)}"
    type_name = type(feature).__name__
    if type_name in ("Image", "ClassLabel"):
        return {"Image": "image", "ClassLabel": "class"}[type_name]
    data_type = str(getattr(feature, "dtype", "")) if type_name == "Value" else ""
    if data_type in ("string", "large_string"):
        return "text"
    return "number" if data_type.startswith(("int", "uint", "float", "bool")) else "other"


def list_item(feature: Any) -> Any:
    """What a column of lists holds (``datasets`` has four ways to say it), or None."""
    if isinstance(feature, list):
        return feature[0]
    return getattr(feature, "feature", None) if type(feature).__name__ in ("Sequence", "List", "LargeList") else None


def read_labels(column: Any, feature: Any, *, where: str, row_name: RowName) -> SourceLabels:
    """The labels of one column.

    Args:
        column: ``pyarrow.ChunkedArray``.
        feature: Feature type of the column.
        where: The column, for messages.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A label is missing or is no class, or the column cannot hold labels.
    """
    kind = kind_of(feature)
    if kind in ("list of class", "list of text", "list of number"):
        return _several_labels(column, feature, where=where, row_name=row_name)
    if kind == "class":
        return SourceLabels(_class_numbers(column, where=where, row_name=row_name), tuple(feature.names))
    if kind == "text":
        cells = [cell or "" for cell in column.to_pylist()]
        return SourceLabels(labels_from_text(cells, where=where, row_name=row_name), None)
    if kind == "number":
        return SourceLabels(labels_from_numbers(_numbers(column), where=where, row_name=row_name), None)
    raise DataError(
        f"The {where} holds {feature}, which cannot be labels. Labels are a ClassLabel, whole numbers, text, or lists of "
        "these where an image has several labels. Choose another column with --label-column."
    )


def read_indicators(columns: Mapping[str, Any], features: Mapping[str, Any]) -> np.ndarray:
    """(n, L) numbers of several columns, one per label; missing ones are NaN.

    Raises:
        DataError: A column holds something else.
    """
    for name in columns:
        if kind_of(features[name]) != "number":
            raise DataError(f"The column {name} holds {features[name]}. Several label columns hold 0 or 1 each.")
    return np.stack([_numbers(column).astype(np.float64) for column in columns.values()], axis=1)


def read_label_columns(
    columns: Mapping[str, Any], features: Mapping[str, Any], request: SourceRequest, *, holder: str, row_name: RowName
) -> SourceLabels:
    """Several labels per image of several columns of 0 and 1; classes where each row has exactly one 1.

    Raises:
        DataError: As of ``read_indicators`` and ``label_set_from_numbers``.
    """
    indicators, names = read_indicators(columns, features), list(columns)
    if are_one_hot(indicators) and not request.several_labels:
        return one_class_each(indicators, names, holder)
    return label_set_from_numbers(
        indicators, names, uncertain=request.uncertain, none_label=request.none_label, where="columns", row_name=row_name
    )


def read_groups(column: Any, feature: Any, *, where: str, row_name: RowName) -> np.ndarray:
    """(n,) patients or the like, as text.

    Raises:
        DataError: One is missing, or the column holds no text, numbers or classes.
    """
    if kind_of(feature) not in GROUP_KINDS:
        raise DataError(f"The {where} holds {feature}, which cannot be groups. Choose another with --group-column.")
    cells: list[Any] = column.to_pylist()
    hidden = kind_of(feature) == "class"  # of which a number below 0 is not known
    groups = [None if cell is None or (hidden and cell < 0) else cell for cell in cells]
    refuse_missing_groups(groups, where=where, row_name=row_name)
    return np.asarray([str(group) for group in groups])


def read_attribute(column: Any, feature: Any) -> np.ndarray | None:
    """(n,) numbers (missing ones are NaN) or text; None for what is no property of an image."""
    kind = kind_of(feature)
    if kind == "number":
        return _numbers(column).astype(np.float64)
    if kind == "class":
        return np.asarray(["" if cell is None or cell < 0 else feature.names[cell] for cell in column.to_pylist()])
    if kind != "text":
        return None
    cells: list[str] = [cell or "" for cell in column.to_pylist()]
    return attribute_values(cells) if max(map(len, cells)) <= _LONGEST_ATTRIBUTE else None


def _numbers(column: Any) -> np.ndarray:
    """Integers stay integers where none is missing; missing ones are NaN otherwise."""
    if column.null_count == 0:
        return np.asarray(column.to_numpy())
    return np.asarray([np.nan if cell is None else float(cell) for cell in column.to_pylist()])


def _class_numbers(column: Any, *, where: str, row_name: RowName) -> np.ndarray:
    numbers = labels_from_numbers(_numbers(column), where=where, row_name=row_name)
    hidden = np.flatnonzero(numbers < 0)
    if hidden.size:
        raise DataError(
            f"The label is {numbers[hidden[0]]} in {row_name(int(hidden[0]))} ({where}), which says that it is not known. "
            "Fill it in, remove the row, or pass --uncertain leave-out."
        )
    return numbers


def _several_labels(column: Any, feature: Any, *, where: str, row_name: RowName) -> SourceLabels:
    """Lists of classes, or lists of one length that hold one 0 or 1 per label."""
    cells: list[list[Any] | None] = column.to_pylist()
    for row, cell in enumerate(cells):
        if cell is None or None in cell:
            raise DataError(f"A label is missing in {row_name(row)} ({where}). An image without any has an empty list.")
    lists = [cell for cell in cells if cell is not None]
    item = list_item(feature)
    length = getattr(feature, "length", -1)
    if kind_of(item) == "number" and length > 1 and all(value in (0, 1) for cell in lists for value in cell):
        return SourceLabels(np.asarray(lists, dtype=np.int64), tuple(str(label) for label in range(length)))
    if kind_of(item) == "class":
        names, indices = tuple(item.names), [[int(value) for value in cell] for cell in lists]
    else:
        places_of_rows = [row for row, cell in enumerate(lists) for _ in cell]
        flat = [value for cell in lists for value in cell]
        if kind_of(item) == "number":
            values = np.asarray(flat)
            flat = labels_from_numbers(values, where=where, row_name=lambda i: row_name(places_of_rows[i])).tolist()
        distinct = {value: index for index, value in enumerate(sorted(set(flat)))}
        names, indices = tuple(str(value) for value in distinct), [[distinct[value] for value in cell] for cell in lists]
    labels = np.zeros((len(lists), len(names)), dtype=np.int64)
    for row, present in enumerate(indices):
        labels[row, present] = 1
    return SourceLabels(labels, names)


def is_no_label(cell: object) -> bool:
    """Whether a cell says that the label is not known: nothing, or −1."""
    return is_empty(cell) or cell == -1


def unused_classes(labels: SourceLabels) -> tuple[str, ...]:
    """A notice about classes without images."""
    if labels.names is None:
        return ()
    several = labels.values.ndim == 2
    used = set((np.flatnonzero(labels.values.any(axis=0)) if several else labels.values).tolist())
    unused = [name for number, name in enumerate(labels.names) if number not in used]
    return (f"No image of the classes {', '.join(unused)} in the rows used.",) if unused else ()


def decode_cell(cell: Mapping[str, Any] | None, name: str) -> np.ndarray:
    """Pixels of one cell of an image column: its bytes, or the file that it names.

    Raises:
        UnreadableImageError: It is empty, names an address alone, or what it holds cannot be decoded.
    """
    content, path = (cell or {}).get("bytes"), (cell or {}).get("path")
    if content is not None:
        return decode_bytes(content, name=name)
    if not path:
        raise UnreadableImageError(name, "the cell is empty")
    if "://" in path:
        raise UnreadableImageError(name, "only its address on the internet is stored, not the image")
    return decode_file(Path(path), name=name)


_LABEL_KINDS = ("class", "list of class")


class HfColumns(NamedTuple):
    """The columns with images, labels, patients and splits."""

    image: str
    labels: tuple[str, ...]
    group: str | None
    split: str | None


def find_columns(
    name: str, features: Mapping[str, Any], request: SourceRequest, *, with_split: bool, column_of: Callable[[str], Any]
) -> HfColumns:
    """Find the columns by what they hold and by their usual names, or as the user named them.

    Args:
        name: Name of the dataset, for messages.
        features: Column → what it holds.
        request: Names columns.
        with_split: Whether a column may name the split of each row.
        column_of: Gives the cells of a column, for those that together may say one class of each image.

    Raises:
        DataError: A column is missing, holds something else, or several could be meant.
    """
    header = Header(name, tuple(features))
    image = _image_column(header, features, request.path_column)
    labels = _label_columns(header, features, request, column_of)
    usable = [column for column, feature in features.items() if kind_of(feature) in GROUP_KINDS]
    wanted = request.group_column
    group = find_group_column(header if wanted else Header(name, tuple(usable)), wanted, taken=labels)
    split = find_column(header, None, kind="splits", usual_names=SPLIT_COLUMNS, choose="Rename all but one.")
    return HfColumns(image, labels, group, split if with_split else None)


def _image_column(header: Header, features: Mapping[str, Any], wanted: str | None) -> str:
    images = [column for column, feature in features.items() if kind_of(feature) == "image"]
    if wanted is not None:
        column = find_column(header, wanted, kind="images", usual_names=(), choose="")
        if column is not None and column not in images:
            raise DataError(f"The column {column} of {header.name} holds {features[column]}, not images (--path-column).")
    if len(images) == 1 or wanted is not None:
        return wanted or images[0]
    if images:
        listed = ", ".join(images)
        raise DataError(f"Several columns of {header.name} hold images: {listed}. Choose one with --path-column.")
    listed = "; ".join(f"{column}: {feature}" for column, feature in features.items())
    raise DataError(
        f"No column of {header.name} is declared as one image per row. Declare it with dataset.cast_column(NAME, "
        f"datasets.Image()), and save the dataset again. Columns: {listed}."
    )


def _label_columns(
    header: Header, features: Mapping[str, Any], request: SourceRequest, column_of: Callable[[str], Any]
) -> tuple[str, ...]:
    """The columns that were named, one with a usual name or kind, or all that together say one class of each image."""
    choose = "Name it with --label-column."
    if request.label_columns:
        for column in request.label_columns:
            find_column(header, column, kind="labels", usual_names=(), choose=choose)
        return request.label_columns
    usual = (*LABEL_COLUMNS, "labels")
    usual_column = find_column(header, None, kind="labels", usual_names=usual, choose=choose)
    if usual_column is not None:
        return (usual_column,)
    declared = [column for column, feature in features.items() if kind_of(feature) in _LABEL_KINDS]
    if len(declared) == 1:
        return (declared[0],)
    if not declared and (one_hot := _one_hot_columns(features, request, column_of)):
        return one_hot
    what = f"No column of {header.name} holds the labels (looked for a ClassLabel, or {', '.join(usual)})"
    if declared:
        what = f"Several columns of {header.name} could hold the labels: {', '.join(declared)}"
    raise DataError(f"{what}. {choose} {header.listed()}")


def _one_hot_columns(features: Mapping[str, Any], request: SourceRequest, column_of: Callable[[str], Any]) -> tuple[str, ...]:
    """The columns of 0 and 1, if each row has exactly one 1 in them."""
    numbers = {
        name: column_of(name)
        for name, feature in features.items()
        if kind_of(feature) == "number" and name != request.group_column and not is_group_name(name)
    }
    read = {name: read_indicators({name: column}, features) for name, column in numbers.items()}
    binary = {name: values for name, values in read.items() if np.isin(values, (0, 1)).all()}
    return tuple(binary) if binary and are_one_hot(np.hstack([*binary.values()])) else ()
