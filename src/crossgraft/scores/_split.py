"""A 4:1 split of images, by patient, that leaves no class without an image to learn from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossgraft.types import ClassIndices

_TRAINING_SHARE = 0.8


class FourToOneSplit(NamedTuple):
    """Row indices of both parts, and what to know about them."""

    train: np.ndarray
    test: np.ndarray
    warnings: tuple[str, ...]


def split_four_to_one(targets: ClassIndices, groups: np.ndarray | None, rng: np.random.Generator) -> FourToOneSplit:
    """The first ⌊0.8 n⌋ rows of a permutation, and the rest.

    With groups, whole groups are permuted and taken while they fit. A class without a row in the larger part gets the
    first of its groups from the rest, so a class with one image (or one group) is never tested.

    Args:
        targets: Class indices (n,).
        groups: The group of each row, or None where every row is its own.
        rng: Generator of the permutation.
    """
    units = np.arange(len(targets)) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(units)
    order = rng.permutation(len(sizes))
    fits = np.cumsum(sizes[order]) <= int(_TRAINING_SHARE * len(targets))
    in_train = np.zeros(len(sizes), dtype=bool)
    in_train[order[fits]] = True
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    learned = np.zeros(int(targets.max()) + 1, dtype=bool)
    learned[targets[in_train[units]]] = True
    for index in np.flatnonzero(~learned):
        of_class = np.unique(units[targets == index])
        in_train[of_class[position[of_class].argmin()]] = True
    is_train = in_train[units]
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    if len(test):
        return FourToOneSplit(train, test, ())
    return FourToOneSplit(
        train, test, ("All images are needed to show every class once, so none is left for validation.",)
    )
