"""How much of the label one column tells, on images that were held out."""

from __future__ import annotations

import numpy as np

from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups

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
