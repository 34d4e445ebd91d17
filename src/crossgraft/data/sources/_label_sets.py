"""Several labels per image: columns of 0 and 1, or several names in one cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crossgraft.data.class_names import natural_key
from crossgraft.errors import DataError
from crossgraft.types import LabelMatrix

_YES = ("1", "1.0", "true", "yes")
_NO = ("0", "0.0", "false", "no")
_SEPARATORS = ("|", ";")
_FEWEST_ROWS, _SMALLEST_SHARE = 2, 0.05  # one odd name is no several labels


def label_set_from_columns(
    columns: Sequence[Sequence[str]], names: Sequence[str], *, row_name: Callable[[int], str]
) -> LabelMatrix:
    """(n, L) of 0 and 1 from L columns of text, one label per column.

    Args:
        columns: Cells of each column.
        names: Names of the columns.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A cell is neither yes nor no.
    """
    matrix = np.zeros((len(columns[0]), len(columns)), dtype=np.int64)
    for number, (column, name) in enumerate(zip(columns, names, strict=True)):
        for row, cell in enumerate(column):
            word = cell.strip().casefold()
            if word not in _YES and word not in _NO:
                raise _neither(cell.strip(), f"{row_name(row)} (column {name})")
            matrix[row, number] = word in _YES
    return matrix


def label_set_from_numbers(values: np.ndarray, *, where: str, row_name: Callable[[int], str]) -> LabelMatrix:
    """(n, L) of 0 and 1 from an array of numbers or booleans of this shape.

    Args:
        values: (n, L).
        where: The array, for messages.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A value is neither 0 nor 1.
    """
    if values.dtype.kind not in "iubf":
        raise DataError(
            f"The {where} has shape {values.shape} but holds no numbers. Save 0 and 1, one column per label."
        )
    bad = np.argwhere((values != 0) & (values != 1))
    if bad.size:
        row, column = (int(place) for place in bad[0])
        raise _neither(f"{values[row, column]:g}", f"{row_name(row)}, column {column} ({where})")
    return values.astype(np.int64)


def label_set_from_cells(cells: Sequence[str], separator: str) -> tuple[LabelMatrix, tuple[str, ...]]:
    """(n, L) of 0 and 1, and the names of the L labels in natural order, from cells of several names.

    A blank cell is an image without any label.

    Args:
        cells: One per row.
        separator: Separator between the names.

    Raises:
        DataError: All cells are blank.
    """
    named = [{name for part in cell.split(separator) if (name := part.strip())} for cell in cells]
    names = sorted(set().union(*named), key=natural_key)
    if not names:
        raise DataError(
            "No image has any label: all cells of the label column are blank. Choose another --label-column."
        )
    place = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(cells), len(names)), dtype=np.int64)
    for row, found in enumerate(named):
        matrix[row, [place[name] for name in found]] = 1
    return matrix, tuple(names)


def separator_notices(cells: Sequence[str], column: str) -> tuple[str, ...]:
    """A notice where many cells look as if they held several labels."""
    for separator in _SEPARATORS:
        number = sum(separator in cell for cell in cells)
        if number >= max(_FEWEST_ROWS, _SMALLEST_SHARE * len(cells)):
            return (
                f"{number} of {len(cells)} cells of the column {column} contain {separator}, and each is taken as one label. "
                f"If they hold several labels, say so with --label-separator '{separator}'.",
            )
    return ()


def _neither(found: str, where: str) -> DataError:
    if found in ("-1", "-1.0"):
        return DataError(
            f"The label is -1 (uncertain) in {where}. Several labels per image are 0 or 1: decide for 0 or 1, or remove the "
            "row."
        )
    what = f"The label is {found}" if found and found.casefold() != "nan" else "The label is missing"
    return DataError(
        f"{what} in {where}. Several labels per image are 0 or 1 (or no and yes), one column per label. Fill in 0 or 1, or "
        "leave the column out of --label-column."
    )
