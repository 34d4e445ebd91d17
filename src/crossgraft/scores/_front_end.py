"""The checks that every score shares: what a caller may pass, and what a score then receives.

Scores never check their arrays themselves. After this front end, features are finite float32 or float64 matrices that
share memory with the caller's where they can (and are never written to), and labels are 0 … C−1.
"""

from __future__ import annotations

from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from crossgraft.errors import DataError


class MappedLabels(NamedTuple):
    """Labels as class indices, and the label that each index stands for."""

    names: np.ndarray
    indices: np.ndarray


def float_matrix(name: str, values: ArrayLike) -> np.ndarray:
    """A finite two-dimensional float32 or float64 array.

    Args:
        name: The argument, for messages.
        values: Real numbers, one row per image. float16 becomes float32; integers and long doubles become float64.

    Raises:
        DataError: Wrong number of axes, an empty axis, values that are no real numbers, NaN or infinity.
    """
    matrix = np.asarray(values)
    if matrix.ndim != 2:
        raise DataError(f"`{name}` must have two axes (rows, columns), got shape {matrix.shape}.")
    if 0 in matrix.shape:
        raise DataError(f"`{name}` is empty: shape {matrix.shape}.")
    if matrix.dtype == np.float16:
        matrix = matrix.astype(np.float32)
    elif matrix.dtype.kind in "iub" or (matrix.dtype.kind == "f" and matrix.dtype.itemsize not in (4, 8)):
        matrix = matrix.astype(np.float64)
    elif matrix.dtype.kind != "f":
        raise DataError(f"`{name}` must hold real numbers, got dtype {matrix.dtype}.")
    if not matrix.dtype.isnative:  # as some file formats store it; sparse products and BLAS want the machine's own
        matrix = matrix.astype(matrix.dtype.newbyteorder("="))
    _require_finite(name, matrix)
    return matrix


def _require_finite(name: str, matrix: np.ndarray) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        column_sums = np.ones(len(matrix), dtype=matrix.dtype) @ matrix
    if np.isfinite(column_sums).all():  # NaN and infinity survive a sum; only an overflow needs the second look
        return
    bad_rows = np.flatnonzero(~np.isfinite(matrix).all(axis=1))
    if bad_rows.size:
        raise DataError(
            f"`{name}` contains NaN or infinity in {bad_rows.size} of {len(matrix)} rows, first in row {bad_rows[0]}. "
            "Check the images and the weights that produced them, or leave these rows out."
        )


def map_labels(labels: ArrayLike) -> MappedLabels:
    """Map labels of any type that sorts to 0 … C−1.

    Raises:
        DataError: Not one label per row, fewer than two rows or classes, missing labels, measured (float) targets, or
            labels of mixed types.
    """
    raw = np.asarray(labels)
    if raw.ndim != 1:
        raise DataError(f"`labels` must have one axis, one label per row, got shape {raw.shape}.")
    if len(raw) < 2:
        raise DataError(f"`labels` has {len(raw)} rows; a score needs at least 2.")
    if raw.dtype.kind == "O" and all(isinstance(label, Real) for label in raw.tolist()):
        raw = np.array(raw.tolist())  # a column of numbers, perhaps with gaps, as tables give it
    if raw.dtype.kind == "f":
        _require_whole_numbers(raw)
    elif raw.dtype.kind not in "iubUSO":
        raise DataError(f"`labels` must be integers, strings or booleans, got dtype {raw.dtype}.")
    names, indices = _sorted_unique("labels", raw)
    if len(names) < 2:
        raise DataError(
            f"All {len(raw)} labels are {names[0]!r}; a score needs at least 2 classes. "
            "Check the label column and the rows that were selected."
        )
    return MappedLabels(names, indices)


def _require_whole_numbers(labels: np.ndarray) -> None:
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        raise DataError(f"`labels` is missing or infinite in row {row}. Leave out the rows without a label.")
    if (labels != np.round(labels)).any():
        row = int(np.flatnonzero(labels != np.round(labels))[0])
        raise DataError(
            f"`labels` holds measured values, not classes ({labels[row]:g} in row {row}). These scores are for "
            "classification: bin the values into classes first, for example with numpy.digitize."
        )


def _sorted_unique(argument: str, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    try:
        names, indices = np.unique(values, return_inverse=True)
    except TypeError as error:
        kinds = ", ".join(sorted({type(value).__name__ for value in values.tolist()}))
        raise DataError(f"`{argument}` mixes types that do not sort together ({kinds}). Use one type.") from error
    return names, indices


def map_groups(groups: ArrayLike) -> np.ndarray:
    """Map group names (patients, writers) to 0 … G−1.

    Raises:
        DataError: Not one group per row, or names of mixed types.
    """
    raw = np.asarray(groups)
    if raw.ndim != 1:
        raise DataError(f"`groups` must have one axis, one group per row, got shape {raw.shape}.")
    return _sorted_unique("groups", raw)[1]


def require_equal_rows(lengths: dict[str, int]) -> None:
    """Check that all row-aligned inputs have the same number of rows.

    Raises:
        DataError: They differ; the message gives all lengths.
    """
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"`{name}` has {length}" for name, length in lengths.items())
        raise DataError(f"The inputs must have one row per image each, but {counts} rows.")
