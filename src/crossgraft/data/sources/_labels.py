"""Labels are classes. What looks like a measurement, or is missing, is refused with the row it stands in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data.cells import LARGEST_EXACT, is_empty, may_be_no_label, number_in, one_spelling
from crossgraft.errors import DataError, UsageError
from crossgraft.plain_types import Uncertain
from crossgraft.words.formatting import counted

_ADVICE = (
    "crossgraft ranks models for classification: turn the numbers into classes, or choose other labels "
    "(--label-column)."
)


class SourceLabels(NamedTuple):
    """Labels as a source gives them.

    Attributes:
        values: (n,), or (n, L) of 0 and 1 with several labels per image.
        names: Names of label number 0, 1, …, or of the L columns; None: labels are shown as they are.
        notices: Notices to the user, one sentence each.
    """

    values: np.ndarray
    names: tuple[str, ...] | None = None
    notices: tuple[str, ...] = ()


def labels_from_text(values: Sequence[str], *, where: str, row_name: Callable[[int], str]) -> np.ndarray:
    """Labels of a text table: whole numbers if all of them are and a float holds them, words otherwise.

    Args:
        values: One cell a row.
        where: The column, for messages.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A label is missing, or the labels are numbers that are not whole.
    """
    words = [value.strip() for value in values]
    empty = [row for row, word in enumerate(words) if is_empty(word)]
    if empty:
        raise missing_labels(words[empty[0]], empty, where=where, row_name=row_name)
    numbers = [number_in(word) for word in words]
    if any(
        number is None or abs(number) > LARGEST_EXACT for number in numbers
    ):  # codes of 17 digits would run together
        return one_spelling(np.asarray(words)).values
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


def known_labels(cells: Sequence[object], uncertain: Uncertain | None) -> np.ndarray:
    """Numbers of the rows whose one label is known, or of all where none is to be left out.

    Args:
        cells: One label per row; unknown ones are blank, −1, or a word that says so.
        uncertain: ``leave-out``, or None: all rows.

    Raises:
        DataError: None is known.
        UsageError: ``zeros`` or ``ones``, which are labels of yes and no.
    """
    if uncertain is None:
        return np.arange(len(cells))
    if uncertain != "leave-out":
        raise UsageError(
            f"--uncertain {uncertain} is for several labels per image, each 0 or 1; here an image has one. Pass --uncertain "
            "leave-out, or nothing."
        )
    known = [row for row, cell in enumerate(cells) if not may_be_no_label(cell)]
    if not known:
        raise DataError(f"No label is known in any of the {len(cells)} rows, and --uncertain leave-out leaves all out.")
    return np.asarray(known)


def left_out_notices(num_kept: int, num_rows: int) -> tuple[str, ...]:
    """What ``leave-out`` left out, in words."""
    left_out = num_rows - num_kept
    verb = "is" if left_out == 1 else "are"
    of = f"{left_out} of {counted(num_rows, 'image')}"
    return (f"{of} {verb} left out, the label being unknown (--uncertain leave-out).",) if left_out else ()


def missing_labels(word: str, rows: Sequence[int], *, where: str, row_name: Callable[[int], str]) -> DataError:
    """The error for rows without a label.

    Args:
        word: What the first of them says.
        rows: Their numbers.
        where: The column, for the message.
        row_name: Function that names row i.
    """
    others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    said = f"; {word} says that it is not known" if word else ""
    return DataError(
        f"The label is missing in {row_name(rows[0])}{others} ({where}{said}). Fill it in, remove the row, or pass --uncertain "
        "leave-out, which leaves such images out."
    )
