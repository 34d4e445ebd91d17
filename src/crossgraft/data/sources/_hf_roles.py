"""Which column of a dataset of Hugging Face holds what."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from crossgraft.data._groups import is_group_name
from crossgraft.data.sources._column_names import LABEL_COLUMNS, SPLIT_COLUMNS
from crossgraft.data.sources._hf_columns import GROUP_KINDS, kind_of, read_indicators
from crossgraft.data.sources._label_sets import are_one_hot
from crossgraft.data.sources._source import SourceRequest
from crossgraft.data.sources._table import Header, find_column, find_group_column
from crossgraft.errors import DataError

_LABEL_KINDS = ("class", "list of class")


class HfColumns(NamedTuple):
    """The columns with images, labels, patients and splits."""

    image: str
    labels: tuple[str, ...]
    group: str | None
    split: str | None


def find_columns(
    name: str,
    features: Mapping[str, Any],
    request: SourceRequest,
    *,
    with_split: bool,
    column_of: Callable[[str], Any],
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
            raise DataError(
                f"The column {column} of {header.name} holds {features[column]}, not images (--path-column)."
            )
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
    found = find_column(header, None, kind="labels", usual_names=usual, choose=choose)
    if found is not None:
        return (found,)
    declared = [column for column, feature in features.items() if kind_of(feature) in _LABEL_KINDS]
    if len(declared) == 1:
        return (declared[0],)
    if not declared and (one_hot := _one_hot_columns(features, request, column_of)):
        return one_hot
    what = f"No column of {header.name} holds the labels (looked for a ClassLabel, or {', '.join(usual)})"
    if declared:
        what = f"Several columns of {header.name} could hold the labels: {', '.join(declared)}"
    raise DataError(f"{what}. {choose} {header.listed()}")


def _one_hot_columns(
    features: Mapping[str, Any], request: SourceRequest, column_of: Callable[[str], Any]
) -> tuple[str, ...]:
    """The columns of 0 and 1, if each row has exactly one 1 in them."""
    numbers = {
        name: column_of(name)
        for name, feature in features.items()
        if kind_of(feature) == "number" and name != request.group_column and not is_group_name(name)
    }
    read = {name: read_indicators({name: column}, features) for name, column in numbers.items()}
    binary = {name: values for name, values in read.items() if np.isin(values, (0, 1)).all()}
    return tuple(binary) if binary and are_one_hot(np.hstack([*binary.values()])) else ()
