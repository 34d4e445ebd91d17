"""Labels are classes. What looks like a measurement, or is missing, is refused with the row it stands in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data.cells import LARGEST_EXACT, is_empty, may_be_no_label, number_in, one_spelling
from crossgraft.data.class_names import natural_key
from crossgraft.errors import DataError, UsageError
from crossgraft.plain_types import Uncertain
from crossgraft.words.formatting import counted

PATH_COLUMNS = (
    "path", "image", "file", "filename", "file_name", "image_path", "filepath", "file_path", "image_id", "image_name",
    "image_file", "image_filename", "image_file_name", "image_index", "img", "img_id", "img_name", "img_path",
    "id_code",
)  # fmt: skip
LABEL_COLUMNS = ("label", "class", "target", "dx", "diagnosis", "finding_labels", "class_name", "label_name")
RARER_PATH_COLUMNS = (
    "id", "isic_id", "file_id", "slide_id", "paths", "files", "images", "filenames", "filepaths", "image_paths",
    "image_filepath", "img_file", "fname",
)  # fmt: skip
"""Looked for where none of the usual names is there; they may be the names of something else."""
RARER_LABEL_COLUMNS = (
    "labels", "classes", "targets", "class_label", "class_id", "label_id", "category", "classification", "diagnostic",
    "diagnosis_1", "benign_malignant", "level", "grade", "finding", "findings", "disease", "pathology", "species",
)  # fmt: skip
SPLIT_COLUMNS = ("split", "partition", "subset")


_ADVICE = "crossgraft ranks models for classification: turn the numbers into classes, or choose other labels (--label-column)."


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

    Raises:
        DataError: A label is missing, or the labels are numbers that are not whole.
    """
    words = [value.strip() for value in values]
    empty = [row for row, word in enumerate(words) if is_empty(word)]
    if empty:
        raise missing_labels(words[empty[0]], empty, where=where, row_name=row_name)
    numbers = [number_in(word) for word in words]
    if any(number is None or abs(number) > LARGEST_EXACT for number in numbers):  # codes of 17 digits would run together
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
    """The error for rows without a label."""
    others = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
    denial = f"; {word} says that it is not known" if word else ""
    return DataError(
        f"The label is missing in {row_name(rows[0])}{others} ({where}{denial}). Fill it in, remove the row, or pass --uncertain "
        "leave-out, which leaves such images out."
    )


UNCERTAIN = -1
"""A label that somebody looked for and could not decide, as CheXpert writes it."""
_WORDS_FOR = {
    **dict.fromkeys(("true", "yes"), 1),
    **dict.fromkeys(("false", "no"), 0),
    **dict.fromkeys(("u", "uncertain", "?"), UNCERTAIN),
}


def numbers_in_columns(columns: Sequence[Sequence[str]], names: Sequence[str], *, row_name: Callable[[int], str]) -> np.ndarray:
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
        f"Each row of {holder} has exactly one 1 in the columns {', '.join(names)}, so they are read as classes, one per image."
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
        raise DataError(f"The {where} has shape {values.shape} but holds no numbers. Save 0 and 1, one column per label.")
    notices: tuple[str, ...] = ()
    if uncertain is not None:
        notices = _notices_of_policy(values, uncertain)
        replacement = 1 if uncertain == "ones" else 0
        values = np.where(values == UNCERTAIN, replacement, np.where(np.isnan(values), 0, values))
    bad = np.argwhere((values != 0) & (values != 1))
    if bad.size:
        row, column = (int(index) for index in bad[0])
        value = values[row, column]
        location = f"column {column} ({where})" if names is None else f"(column {names[column]})"
        separator = ", " if names is None else " "
        raise _neither("" if np.isnan(value) else f"{value:g}", f"{row_name(row)}{separator}{location}")
    whole = values.astype(np.int64)
    return without_none(SourceLabels(whole, None if names is None else tuple(names), notices), none_label, row_name)


def _notices_of_policy(values: np.ndarray, uncertain: Uncertain) -> tuple[str, ...]:
    unsure, blank = int((values == UNCERTAIN).sum()), int(np.isnan(values).sum())
    becomes = {"zeros": 0, "ones": 1}.get(uncertain)
    notices = [f"{counted(unsure, 'uncertain label')} (-1) count as {becomes} (--uncertain {uncertain})."] if unsure else []
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
        raise DataError(f"No label is called {none_label} (--none-label). Labels: {', '.join(names) or 'without names'}.")
    column = names.index(none_label)
    others = np.delete(values, column, axis=1)
    both = np.flatnonzero(values[:, column].astype(bool) & others.any(axis=1))
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
        raise DataError("No image has any label: all cells of the label column are blank. Choose another --label-column.")
    column_of = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(cells), len(names)), dtype=np.int64)
    for row, present in enumerate(named):
        matrix[row, [column_of[name] for name in present]] = 1
    return without_none(SourceLabels(matrix, tuple(names)), none_label, row_name)


_SEPARATORS = ("|", ";")
_FEWEST_ROWS, _SMALLEST_SHARE = 2, 0.05  # one odd name is no several labels


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


def _neither(value: str, where: str) -> DataError:
    advice = "or say with --uncertain zeros, ones or leave-out what they are taken for"
    if value in ("-1", "-1.0"):
        return DataError(
            f"The label is -1 (uncertain) in {where}. Several labels per image are 0 or 1: decide for 0 or 1, remove the row, "
            f"{advice}."
        )
    if value and not is_empty(value):
        return DataError(
            f"The label is {value} in {where}. Several labels per image are 0 or 1 (or no and yes), one column per label. Fill "
            "in 0 or 1, or leave the column out of --label-column."
        )
    return DataError(
        f"The label is missing in {where}. Several labels per image are 0 or 1 (or no and yes), one column per label. Fill in 0 "
        f"or 1, leave the column out of --label-column, {advice}."
    )
