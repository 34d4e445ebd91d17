"""Permutations: of labels for the control of a score, of results for a test of rank agreement."""

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
from jaxtyping import Float

from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups

EXACT_UP_TO = 7
"""With up to this many values all orders are tried (7! = 5040)."""


def shuffle_labels(targets: ClassIndices, groups: Groups | None, rng: np.random.Generator) -> ClassIndices:
    """The same labels in random order; with groups, the labels of one group stay together.

    A network that recognises patients tells classes apart that were dealt out by patient, whatever the classes mean. If
    the control gave the images of one patient different labels, it would make such a network look informative.

    Args:
        targets: Class index of each row.
        groups: Patient (or writer, lesion …) of each row.
        rng: Generator of the order.

    Returns:
        Class counts as before. Groups are dealt out in random order, their rows in random order within; where groups
        differ in size, the labels of a group may lie in two neighbouring ones.
    """
    if groups is None:
        return rng.permutation(targets)
    units = np.unique(groups, return_inverse=True)[1]
    givers, receivers = _rows_by_group(units, rng), _rows_by_group(units, rng)
    shuffled = np.empty_like(targets)
    shuffled[receivers] = targets[givers]
    return shuffled


def _rows_by_group(units: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """All rows, group after group, both in random order."""
    place = rng.permutation(int(units.max()) + 1)
    return np.lexsort((rng.random(len(units)), place[units]))


def permutation_p_value(
    statistic: Callable[[Sequence[float], Sequence[float]], float],
    first: Float[np.ndarray, " num_models"],
    second: Float[np.ndarray, " num_models"],
    *,
    num_permutations: int = 4999,
    seed: int = 0,
) -> float:
    """One-sided p: the share of orders of ``second`` that agree with ``first`` at least as well as the given one.

    Exact over all orders up to seven values; beyond, (1 + hits) / (1 + num_permutations) over random orders.

    Args:
        statistic: Larger = better agreement.
        first: Values that stay in place.
        second: Values that are permuted.
        num_permutations: Random orders beyond seven values.
        seed: Random seed.

    Returns:
        In (0, 1].
    """
    tolerance = 1e-12  # equal agreement must count as a hit whatever the order of the additions
    observed = statistic(first.tolist(), second.tolist()) - tolerance
    if len(second) <= EXACT_UP_TO:
        hits = sum(statistic(first.tolist(), list(order)) >= observed for order in permutations(second.tolist()))
        return hits / math.factorial(len(second))
    rng = generator(seed, "permutation p")
    hits = sum(statistic(first.tolist(), rng.permutation(second).tolist()) >= observed for _ in range(num_permutations))
    return (1 + hits) / (1 + num_permutations)
