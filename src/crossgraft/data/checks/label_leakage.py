"""Columns, and sizes or file types of images, that almost determine the label: a shortcut, or the label itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from crossgraft.data.checks.class_counts import ADVICE, find_alike_groups
from crossgraft.data.checks.record import ColumnRecord, FindingRecord
from crossgraft.data.checks.survey import Survey, finding
from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups
from crossgraft.words.formatting import count, counted, listed, percent

NUM_FOLDS = 5
NUM_BINS = 10
"""Numbers are cut into this many bins of equal counts; up to as many different numbers are taken as they are."""


def held_out_accuracy(values: np.ndarray, targets: ClassIndices, groups: Groups | None = None) -> float:
    """Balanced accuracy of telling the class from one column, by cross-validation over five folds.

    Each value of the column is taken for the class in whose training images it is most frequent, relative to the size
    of the class. A value that the training images do not have tells nothing and counts as a guess, so a column of
    names or numbers of images, all different, is at chance. Groups are never divided; O(n · folds).

    Args:
        values: (n,) text or numbers; NaN is a value of its own.
        targets: (n,) class of each row, 0 … C−1; at least two classes occur.
        groups: Patient of each row.

    Returns:
        Mean over the classes of the share of images told right, in [0, 1]; guessing gives 1 / C.
    """
    _, codes = np.unique(_binned(values), return_inverse=True)
    _, classes = np.unique(targets, return_inverse=True)
    shape = (int(codes.max()) + 1, int(classes.max()) + 1)
    fold_of_row = _folds(classes, groups)
    right = np.zeros(len(classes))
    for fold in range(NUM_FOLDS):
        held_out = fold_of_row == fold
        counts = np.zeros(shape)
        np.add.at(counts, (codes[~held_out], classes[~held_out]), 1)
        rates = counts / np.maximum(counts.sum(axis=0), 1)
        is_best = rates == rates.max(axis=1, keepdims=True)  # unseen values: all classes are equally good
        right[held_out] = (is_best / is_best.sum(axis=1, keepdims=True))[codes[held_out], classes[held_out]]
    return float(np.mean([right[classes == index].mean() for index in range(shape[1])]))


def _binned(values: np.ndarray) -> np.ndarray:
    """Text stays; many different numbers become bins of equal counts, with one more for NaN."""
    if values.dtype.kind not in "fiu":
        return values.astype(str)
    numbers = values.astype(np.float64)
    known = numbers[~np.isnan(numbers)]
    if len(np.unique(known)) > NUM_BINS:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, NUM_BINS + 1)[1:-1]))
        numbers = np.where(np.isnan(numbers), np.nan, np.searchsorted(edges, numbers, side="right"))
    return np.where(np.isnan(numbers), -np.inf, numbers)


def _folds(classes: ClassIndices, groups: Groups | None) -> np.ndarray:
    """Fold of each row: groups (or rows) of one class are shuffled and dealt out in turn."""
    _, first, unit_of_row = np.unique(
        np.arange(len(classes)) if groups is None else groups, return_index=True, return_inverse=True
    )
    shuffled = generator(0, "columns").permutation(len(first))
    order = shuffled[np.argsort(classes[first][shuffled], kind="stable")]
    fold_of_unit = np.empty(len(first), dtype=np.int64)
    fold_of_unit[order] = np.arange(len(first)) % NUM_FOLDS
    return fold_of_unit[unit_of_row]


_GROUPS_ACROSS_SPLITS_NAME, _GROUPS_ACROSS_SPLITS_TITLE = "groups_across_splits", "Patient leakage"


def check_groups_across_splits(survey: Survey) -> list[FindingRecord]:
    """A patient in two splits is unsound; without patients or without a split nothing can be said."""
    if survey.groups is None:
        text = "No group column was given, so images of one patient may be in several splits. Name it with --group-column."
        return [finding(_GROUPS_ACROSS_SPLITS_NAME, _GROUPS_ACROSS_SPLITS_TITLE, "not assessed", text)]
    number = counted(len(np.unique(survey.groups)), "group")
    if len(survey.split_names) < 2 or survey.splits is None:
        text = f"{number} by {survey.group_column}, but no split to look at. --holdout and --folds draw one by group."
        return [finding(_GROUPS_ACROSS_SPLITS_NAME, _GROUPS_ACROSS_SPLITS_TITLE, "not assessed", text)]
    shared = [rows for rows in _rows_by_group(survey.groups) if len(survey.splits_of(rows)) > 1]
    alike = [rows for rows in find_alike_groups(survey).rows if len(survey.splits_of(rows)) > 1]
    if not shared and alike:
        text = (
            f"{number} by {survey.group_column}, none of them in more than one split under its own name; but {count(len(alike))} "
            f"would be if names that look alike are one ({survey.pairs_of_splits(alike)})."
        )
        return [finding(_GROUPS_ACROSS_SPLITS_NAME, _GROUPS_ACROSS_SPLITS_TITLE, "warning", text, advice=ADVICE, images=alike)]
    if not shared:
        text = f"{number} by {survey.group_column}, none of them in more than one of {', '.join(survey.split_names)}."
        return [finding(_GROUPS_ACROSS_SPLITS_NAME, _GROUPS_ACROSS_SPLITS_TITLE, "passed", text)]
    verb = "has" if len(shared) == 1 else "have"
    text = (
        f"{count(len(shared))} of {number} by {survey.group_column} {verb} images in more than one split "
        f"({survey.pairs_of_splits(shared)}; {counted(sum(map(len, shared)), 'image')})."
    )
    advice = "Draw the split by group: --holdout or --folds with --group-column."
    return [finding(_GROUPS_ACROSS_SPLITS_NAME, _GROUPS_ACROSS_SPLITS_TITLE, "unsound", text, advice=advice, images=shared)]


def _rows_by_group(groups: np.ndarray) -> list[np.ndarray]:
    """Rows of each group, ascending, the groups in the order of their first row."""
    _, first, index = np.unique(groups, return_index=True, return_inverse=True)
    by_group = np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])
    return [by_group[group] for group in np.argsort(first)]


TELLS_ALMOST_ALL = 0.8
"""Share of the way from guessing to always being right from which a warning is given."""
TELLS_MUCH = 0.4
"""The same share for a notice."""

_NAME, _TITLE = "telling_columns", "Columns that tell the label"
_LEAST_IMAGES = 20
_IMAGE_PROPERTIES = "of the image"


def measure_columns(survey: Survey) -> list[ColumnRecord]:
    """How much each column, and each property of the image files, tells about the label; most telling first.

    With several labels per image, the label that a column tells most about counts. Empty for fewer than 20 images.
    """
    if len(survey.readable_rows) < _LEAST_IMAGES:
        return []
    measured = [
        record
        for column, values in {**survey.attributes, **_image_properties(survey)}.items()
        if len(np.unique(values.astype(str))) > 1 and (record := _measure(survey, column, values)) is not None
    ]
    return sorted(measured, key=lambda record: -strength(record))


def strength(column: ColumnRecord) -> float:
    """0 for guessing, 1 for always right."""
    return (column.balanced_accuracy - column.chance) / (1 - column.chance)


def check_label_leakage(survey: Survey, columns: list[ColumnRecord]) -> list[FindingRecord]:
    """Advisory: what ``measure_columns`` found, in words."""
    if not columns:
        return []
    findings: list[FindingRecord] = []
    strong = [column for column in columns if strength(column) >= TELLS_ALMOST_ALL]
    telling = [column for column in columns if TELLS_MUCH <= strength(column) < TELLS_ALMOST_ALL]
    if strong:
        text = f"These almost determine the label: {_in_words(strong)}."
        advice = (
            "If a column is another form of the label, ignore this. If it is a site, a scanner or a date, a model may learn "
            "to recognise that instead."
        )
        findings.append(finding(_NAME, _TITLE, "warning", text, advice=advice))
    if telling:
        advice = "Compare results within each value of it, to see whether a model only learnt it."
        findings.append(finding(_NAME, _TITLE, "notice", f"These tell much of the label: {_in_words(telling)}.", advice=advice))
    if not findings:
        text = f"{counted(len(columns), 'column')} looked at: none tells much of the label."
        if strength(columns[0]) > 0:
            text += f" Most tells {_in_words(columns[:1])}."
        findings.append(finding(_NAME, _TITLE, "passed", text))
    return findings


def _in_words(columns: list[ColumnRecord]) -> str:
    return listed(
        [
            f"{column.column}{f' (of {column.label})' if column.label else ''} with {percent(column.balanced_accuracy)} "
            f"right on held-out images (guessing: {percent(column.chance)})"
            for column in columns
        ]
    )


def _measure(survey: Survey, column: str, values: np.ndarray) -> ColumnRecord | None:
    rows = survey.readable_rows
    groups = None if survey.groups is None else survey.groups[rows]
    measured = [
        (held_out_accuracy(values[rows], classes, groups), 1 / num_classes, label)
        for classes, label in zip(survey.task.views(survey.targets[rows]), _names_of_views(survey), strict=True)
        if (num_classes := len(np.unique(classes))) > 1
    ]
    if not measured:
        return None
    accuracy, chance, label = max(measured, key=lambda prediction: prediction[0])
    return ColumnRecord(column=column, label=label, balanced_accuracy=accuracy, chance=chance)


def _names_of_views(survey: Survey) -> Sequence[str | None]:
    """The labels that can be told one by one; classes are told together."""
    return [None] if survey.task.partitions else survey.class_names


def _image_properties(survey: Survey) -> dict[str, np.ndarray]:
    """What can be read from the files without looking at the picture."""
    facts = survey.facts
    return {
        f"height {_IMAGE_PROPERTIES}": np.asarray([fact.height for fact in facts]),
        f"width {_IMAGE_PROPERTIES}": np.asarray([fact.width for fact in facts]),
        f"channels and bit depth {_IMAGE_PROPERTIES}": np.asarray([fact.kind.partition(" ")[2] for fact in facts]),
        "type of the file": np.asarray([PurePath(survey.image_name(row)).suffix.casefold() for row in range(len(survey))]),
    }
