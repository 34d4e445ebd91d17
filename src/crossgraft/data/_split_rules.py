"""What a split needs to be possible, and how it came out in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from crossgraft.data._label_split import LabelAssignment
from crossgraft.errors import DataError
from crossgraft.types import ClassIndices, Groups, LabelMatrix
from crossgraft.words.formatting import counted

_MOST_MISSING = 6


def stratified_in_words(groups: Groups | None) -> str:
    """How a split by class was stratified."""
    if groups is None:
        return "stratified by class; patient leakage not checked (no groups)"
    return "stratified by class, no group in two parts"


def label_sets_in_words(
    labelled: LabelAssignment, groups: Groups | None, parts: Sequence[str], class_names: Sequence[str] | None
) -> str:
    """How a split by labels came out: how far off it is, and which label is missing where."""
    together = "patient leakage not checked (no groups)" if groups is None else "no group in two parts"
    reached = f"at most {labelled.largest_deviation:.2g} images off a share, where less than {labelled.bound:.2g} is sure"
    missing = [
        f"{label if class_names is None else class_names[label]} is not in {parts[part]}"
        for part, label in labelled.missing[:_MOST_MISSING]
    ]
    more = len(labelled.missing) - len(missing)
    lacks = f"; {', '.join(missing)}{f' and {more} more such gaps' if more > 0 else ''}" if missing else ""
    return f"stratified by label ({reached}); {together}{lacks}"


def refuse_few_units(targets: LabelMatrix, groups: Groups | None, num_parts: int, parts: str) -> None:
    """Every part must get an image, or a group.

    Raises:
        DataError: There are fewer images (groups) than parts.
    """
    number = len(targets) if groups is None else len(np.unique(groups))
    if number < num_parts:
        what = "images" if groups is None else "groups (patients)"
        raise DataError(f"There are {number} {what} for {num_parts} {parts}. Ask for at most {number} {parts}.")


def refuse_rare_classes(
    targets: ClassIndices, groups: Groups | None, num_parts: int, parts: str, class_names: Sequence[str] | None
) -> None:
    """A class must be able to be in every part.

    Raises:
        DataError: A class has fewer images, or images of fewer groups, than there are parts.
    """
    for index in np.unique(targets):
        members = targets == index
        count = int(members.sum()) if groups is None else len(np.unique(groups[members]))
        if count < num_parts:
            units = counted(count, "image") if groups is None else counted(count, "group (patient)", "groups (patients)")
            name = f"Class number {index}" if class_names is None else f"The class {class_names[index]}"
            raise DataError(f"{name} has {units} and cannot be in {parts}. Collect more, join classes, or ask for fewer parts.")


def refuse_few_groups(targets: ClassIndices, groups: Groups, num_folds: int, class_names: Sequence[str] | None) -> None:
    """Every fold must get a group, and every class must be in train and test rows.

    Raises:
        DataError: There are fewer groups than folds, or all images of a class are of one group.
    """
    num_groups = len(np.unique(groups))
    if num_groups < num_folds:
        raise DataError(f"There are {num_groups} groups (patients) for {num_folds} folds. Ask for at most {num_groups} folds.")
    refuse_rare_classes(targets, groups, 2, "both the train and the test rows", class_names)


@runtime_checkable
class ListedRows(Protocol):
    """Rows that were listed, whether their images were opened or not."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> np.ndarray: ...
    @property
    def groups(self) -> np.ndarray | None: ...
    @property
    def group_column(self) -> str | None: ...
    @property
    def listing_fingerprint(self) -> str: ...
    @property
    def rows_fingerprint(self) -> str: ...


def refuse_divided_groups(rows: ListedRows, part_of_row: np.ndarray, *, had_groups: bool) -> None:
    """Raise where a split that was made with other groups does not keep those of today together; names none of them.

    Args:
        rows: Rows with their groups now.
        part_of_row: Part of each row; empty for none.
        had_groups: Whether the rows had groups when the split was made.

    Raises:
        DataError: A group has images in several parts, or the rows have no groups any more.
    """
    data = f"{len(part_of_row)} images of {rows.name}"
    if rows.groups is None:
        raise DataError(
            f"The split was made by the groups (patients) that the {data} had then, and they are opened without groups now. "
            "Name their column with --group-column, or make a new split."
        )
    used = part_of_row != ""
    codes = [np.unique(column[used], return_inverse=True)[1] for column in (rows.groups, part_of_row)]
    parts_of_group = np.bincount(np.unique(np.stack(codes), axis=1)[0])
    if divided := int((parts_of_group > 1).sum()):
        then, verb = "other groups" if had_groups else "no groups", "has" if divided == 1 else "have"
        raise DataError(
            f"The split was made for these {data}, but with {then}: {divided} of "
            f"{counted(len(parts_of_group), 'group')} by {rows.group_column} {verb} images in more than one part, so a result "
            "would be of patients that were trained on. Make a new split by these groups, or open the data with the groups "
            "they had then."
        )
