"""Several labels per image: columns of 0 and 1, or several names in one cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from crossgraft.data.cells import is_empty, number_in
from crossgraft.data.class_names import natural_key
from crossgraft.data.sources._labels import SourceLabels, missing_labels
from crossgraft.errors import DataError, UsageError
from crossgraft.plain_types import Uncertain
from crossgraft.words.formatting import counted

UNCERTAIN = -1
"""A label that somebody looked for and could not decide, as CheXpert writes it."""
_WORDS_FOR = {
    **dict.fromkeys(("true", "yes"), 1),
    **dict.fromkeys(("false", "no"), 0),
    **dict.fromkeys(("u", "uncertain", "?"), UNCERTAIN),
}
_SEPARATORS = ("|", ";")
_FEWEST_ROWS, _SMALLEST_SHARE = 2, 0.05  # one odd name is no several labels


def numbers_in_columns(
    columns: Sequence[Sequence[str]], names: Sequence[str], *, row_name: Callable[[int], str]
) -> np.ndarray:
    """(n, L) of 0, 1, −1 (uncertain) and NaN (blank) from L columns of text, one label per column.

    Args:
        columns: Cells of each column.
        names: Names of the columns.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A cell is none of these.
    """
    matrix = np.zeros((len(columns[0]), len(columns)))
    for number, (column, name) in enumerate(zip(columns, names, strict=True)):
        for row, cell in enumerate(column):
            known = indicator(cell)
            if known is None and not is_empty(cell):
                raise _neither(cell.strip(), f"{row_name(row)} (column {name})")
            matrix[row, number] = np.nan if known is None else known
    return matrix


def indicator(cell: str) -> int | None:
    """1 for yes, 0 for no, −1 for uncertain, None for anything else.

    >>> [indicator(cell) for cell in ("1.00", "0,0", "1e0", "yes", "-1", "0.5", "")]
    [1, 0, 1, 1, -1, None, None]
    """
    number = number_in(cell)
    if number is None:
        return _WORDS_FOR.get(cell.strip().casefold())
    return int(number) if number in (0, 1, UNCERTAIN) else None


def is_one_hot(columns: Sequence[Sequence[str]]) -> bool:
    """Whether several columns hold 0 and 1 alone, and each row exactly one 1."""
    if len(columns) < 2:
        return False
    numbers = [[indicator(cell) for cell in column] for column in columns]
    return all(row.count(1) == 1 and row.count(0) == len(row) - 1 for row in zip(*numbers, strict=True))


def are_one_hot(values: np.ndarray) -> bool:
    """Whether (n, L) numbers are 0 and 1 alone, and each row has exactly one 1."""
    return values.shape[1] > 1 and bool(np.isin(values, (0, 1)).all() and (values.sum(axis=1) == 1).all())


def one_class_each(values: np.ndarray, names: Sequence[str], holder: str) -> SourceLabels:
    """Classes, called like the columns, of (n, L) numbers that ``are_one_hot``; the user is told."""
    notice = (
        f"Each row of {holder} has exactly one 1 in the columns {', '.join(names)}, so they are read as classes, one per "
        "image."
    )
    return SourceLabels(np.asarray(names)[values.argmax(axis=1)], None, (notice,))


def refuse_none_label(none_label: str | None) -> None:
    """Raise where an image has one label, of which there is always one.

    Raises:
        UsageError: ``none_label`` is given.
    """
    if none_label is not None:
        raise UsageError("--none-label is for several labels per image; here an image has one. Leave it out.")


def certain_rows(values: np.ndarray) -> np.ndarray:
    """Rows of (n, L) without a −1: what ``leave-out`` keeps."""
    return np.flatnonzero(~(values == UNCERTAIN).any(axis=1))


def label_set_from_numbers(
    values: np.ndarray,
    names: Sequence[str] | None = None,
    *,
    uncertain: Uncertain | None = None,
    none_label: str | None = None,
    where: str,
    row_name: Callable[[int], str],
) -> SourceLabels:
    """Several labels per image from an array of numbers or booleans of this shape.

    Args:
        values: (n, L).
        names: Names of the L columns.
        uncertain: What −1 becomes: 0, 1, or nothing at all, in which case such rows are gone already (``certain_rows``).
            NaN becomes 0 under each of these. None: both are refused.
        none_label: Name of the column that says that an image has none of the others; it becomes no label.
        where: The array, for messages.
        row_name: Function that names row i in messages.

    Raises:
        DataError: A value is neither 0 nor 1; or an image has ``none_label`` and another; or there is no such column.
    """
    if values.dtype.kind not in "iubf":
        raise DataError(
            f"The {where} has shape {values.shape} but holds no numbers. Save 0 and 1, one column per label."
        )
    notices: tuple[str, ...] = ()
    if uncertain is not None:
        notices = _notices_of_policy(values, uncertain)
        replacement = 1 if uncertain == "ones" else 0
        values = np.where(values == UNCERTAIN, replacement, np.where(np.isnan(values), 0, values))
    bad = np.argwhere((values != 0) & (values != 1))
    if bad.size:
        row, column = (int(place) for place in bad[0])
        found = values[row, column]
        place = f"column {column} ({where})" if names is None else f"(column {names[column]})"
        separator = ", " if names is None else " "
        raise _neither("" if np.isnan(found) else f"{found:g}", f"{row_name(row)}{separator}{place}")
    whole = values.astype(np.int64)
    return without_none(SourceLabels(whole, None if names is None else tuple(names), notices), none_label, row_name)


def _notices_of_policy(values: np.ndarray, uncertain: Uncertain) -> tuple[str, ...]:
    unsure, blank = int((values == UNCERTAIN).sum()), int(np.isnan(values).sum())
    becomes = {"zeros": 0, "ones": 1}.get(uncertain)
    notices = (
        [f"{counted(unsure, 'uncertain label')} (-1) count as {becomes} (--uncertain {uncertain})."] if unsure else []
    )
    notices += [f"{counted(blank, 'blank label')} count as 0 (--uncertain {uncertain})."] if blank else []
    return tuple(notices)


def without_none(labels: SourceLabels, none_label: str | None, row_name: Callable[[int], str]) -> SourceLabels:
    """Without the label that says that there is no other; None: as they are.

    Raises:
        DataError: There is no such label, or it is the only one, or an image has it and another.
    """
    if none_label is None:
        return labels
    values, names = labels.values, labels.names or ()
    if none_label not in names:
        raise DataError(
            f"No label is called {none_label} (--none-label). Labels: {', '.join(names) or 'without names'}."
        )
    place = names.index(none_label)
    others = np.delete(values, place, axis=1)
    both = np.flatnonzero(values[:, place].astype(bool) & others.any(axis=1))
    if both.size:
        raise DataError(
            f"{row_name(int(both[0]))} has the label {none_label} and another, as have {counted(both.size, 'row')} in all. "
            "Correct them, or leave --none-label out."
        )
    if not others.shape[1]:
        raise DataError(f"There is no label beside {none_label} (--none-label).")
    return SourceLabels(others, tuple(name for name in names if name != none_label), labels.notices)


def label_set_from_cells(
    cells: Sequence[str], separator: str, *, none_label: str | None = None, row_name: Callable[[int], str]
) -> SourceLabels:
    """Several labels per image, in natural order, from cells of several names.

    A blank cell is an image without any label.

    Args:
        cells: One per row.
        separator: Separator between the names.
        none_label: Name that says that an image has none of the others; it becomes no label.
        row_name: Function that names row i in messages.

    Raises:
        DataError: All cells are blank, a cell says that nothing is known (NA), or an image has ``none_label`` and another.
        UsageError: The separator is empty.
    """
    if not separator:
        raise UsageError("--label-separator is empty. Give what stands between two labels of a cell, such as '|'.")
    for row, cell in enumerate(cells):
        if cell.strip() and is_empty(cell):
            raise missing_labels(cell, [row], where="a cell of several labels", row_name=row_name)
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
    return without_none(SourceLabels(matrix, tuple(names)), none_label, row_name)


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
    advice = "or say with --uncertain zeros, ones or leave-out what they are taken for"
    if found in ("-1", "-1.0"):
        return DataError(
            f"The label is -1 (uncertain) in {where}. Several labels per image are 0 or 1: decide for 0 or 1, remove the row, "
            f"{advice}."
        )
    if found and not is_empty(found):
        return DataError(
            f"The label is {found} in {where}. Several labels per image are 0 or 1 (or no and yes), one column per label. Fill "
            "in 0 or 1, or leave the column out of --label-column."
        )
    return DataError(
        f"The label is missing in {where}. Several labels per image are 0 or 1 (or no and yes), one column per label. Fill in 0 "
        f"or 1, leave the column out of --label-column, {advice}."
    )
