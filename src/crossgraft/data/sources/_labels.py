"""Labels are classes. What looks like a measurement, or is missing, is refused with the row it stands in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from crossgraft.errors import DataError

_ADVICE = (
    "crossgraft ranks models for classification: turn the numbers into classes, or choose other labels "
    "(--label-column)."
)


def labels_from_text(values: Sequence[str], *, where: str, row_name: Callable[[int], str]) -> np.ndarray:
    """Labels of a text table: whole numbers if all of them are, words otherwise.

    Args:
        values: One cell a row.
        where: The column, for messages.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A label is missing, or the labels are numbers that are not whole.
    """
    words = [value.strip() for value in values]
    empty = [row for row, word in enumerate(words) if not word or word.casefold() == "nan"]
    if empty:
        others = f" and {len(empty) - 1} more" if len(empty) > 1 else ""
        raise DataError(
            f"The label is missing in {row_name(empty[0])}{others} ({where}). Fill it in or remove the row."
        )
    numbers = [_number(word) for word in words]
    if any(number is None for number in numbers):
        return np.asarray(words)
    return labels_from_numbers(np.asarray(numbers, dtype=np.float64), where=where, row_name=row_name)


def labels_from_numbers(values: np.ndarray, *, where: str, row_name: Callable[[int], str]) -> np.ndarray:
    """Labels of a numeric array: whole numbers, whatever their type.

    Raises:
        DataError: A label is NaN or infinite, or not whole.
    """
    if values.dtype.kind != "f":
        return values
    missing = np.flatnonzero(~np.isfinite(values))
    if missing.size:
        others = f" and {missing.size - 1} more" if missing.size > 1 else ""
        raise DataError(
            f"The label is not a number in {row_name(int(missing[0]))}{others} ({where}). Fill it in or remove the row."
        )
    fractional = np.flatnonzero(values != np.round(values))
    if fractional.size:
        row = int(fractional[0])
        raise DataError(f"The labels are not whole numbers: {values[row]:g} in {row_name(row)} ({where}). {_ADVICE}")
    return values.astype(np.int64)


def _number(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in word else None
