"""Do two samples come from one distribution? A permutation test that moves whole groups, for several quantities at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups


class WithInterval(NamedTuple):
    """A value and the ends of its interval."""

    value: float
    low: float
    high: float


def independent_difference(first: WithInterval, second: WithInterval) -> WithInterval:
    """First minus second: low = a − b − √((a − low_a)² + (high_b − b)²), high alike.

    The interval has the confidence of the two that are given. It is only as good as they are, and takes them as independent.

    Reference:
        Newcombe, Stat. Med. 17 (1998) 873, method 10; for any statistic Zou and Donner, Stat. Med. 27 (2008) 1693.

    >>> difference = independent_difference(WithInterval(0.9, 0.86, 0.94), WithInterval(0.8, 0.77, 0.83))
    >>> [round(each, 3) for each in difference]
    [0.1, 0.05, 0.15]
    """
    a, low_a, high_a = first
    b, low_b, high_b = second
    return WithInterval(a - b, a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b))


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
    position = rng.permutation(int(units.max()) + 1)
    return np.lexsort((rng.random(len(units)), position[units]))


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


Counts = Float[np.ndarray, "num_units num_values"]
Shares = Float[np.ndarray, "num_permutations num_values"]
Effects = Float[np.ndarray, " num_permutations"]

NUM_PERMUTATIONS = 1999
_PERMUTATIONS_AT_ONCE = 64  # bounds the memory to this many numbers per unit
_TOLERANCE = 1e-9  # equal effects must count as hits whatever the order of the additions


class Quantity(NamedTuple):
    """Something that was counted in both samples.

    Attributes:
        counts: (num_units, num_values) rows of each unit (an image, or all images of a group) with each value.
        effect: Difference of two arrays of shares (rows with each value / all rows), in [0, 1].
    """

    counts: Counts
    effect: Callable[[Shares, Shares], Effects]


class TwoSampleTest(NamedTuple):
    """How much two samples differ, and how often they would if chance had made them.

    Attributes:
        effect: Difference of the shares, in [0, 1].
        p_value: (1 + permutations that differ at least as much) / (1 + permutations), in (0, 1].
    """

    effect: float
    p_value: float


def two_sample_tests(
    quantities: Sequence[Quantity],
    num_rows: Float[np.ndarray, " num_units"],
    in_second: Bool[np.ndarray, " num_units"],
    *,
    num_permutations: int = NUM_PERMUTATIONS,
    seed: int = 0,
) -> list[TwoSampleTest]:
    """Permutation tests of the hypothesis that units were dealt out to the two samples at random.

    Every quantity sees the same permutations; O(permutations · units · values).

    Args:
        quantities: Quantities to be compared.
        num_rows: Rows of each unit.
        in_second: Whether a unit is in the second sample; both samples have one at least.
        num_permutations: Number of random orders.
        seed: Random seed of the orders.

    Returns:
        One test for each quantity. The p-values are not adjusted for their number, see ``holm``.

    Reference:
        Phipson and Smyth, Permutation p-values should never be zero, Statistical Applications in Genetics and Molecular
        Biology 9(1), 2010.
    """
    table = np.hstack([num_rows[:, np.newaxis], *(quantity.counts for quantity in quantities)]).astype(np.float32)
    ends = np.cumsum([1, *(quantity.counts.shape[1] for quantity in quantities)])

    def effects(second: np.ndarray) -> list[Effects]:
        of_second = (second.astype(np.float32) @ table).astype(np.float64)
        of_first = table.sum(axis=0, dtype=np.float64) - of_second
        first, second_shares = (sums / sums[:, :1] for sums in (of_first, of_second))
        return [
            quantity.effect(first[:, start:end], second_shares[:, start:end])
            for quantity, start, end in zip(quantities, ends[:-1], ends[1:], strict=True)
        ]

    observed = [float(effect[0]) for effect in effects(in_second[np.newaxis])]
    rng = generator(seed, "two samples")
    hits = np.zeros(len(quantities))
    for start in range(0, num_permutations, _PERMUTATIONS_AT_ONCE):
        number = min(_PERMUTATIONS_AT_ONCE, num_permutations - start)
        permuted = effects(np.stack([rng.permutation(in_second) for _ in range(number)]))
        hits += [(effect >= value - _TOLERANCE).sum() for effect, value in zip(permuted, observed, strict=True)]
    p_values = (1 + hits) / (1 + num_permutations)
    return [TwoSampleTest(value, float(p)) for value, p in zip(observed, p_values, strict=True)]


def total_variation(first: Shares, second: Shares) -> Effects:
    """The share of rows that would need another value for both samples to be alike; for values without an order.

    >>> total_variation(np.array([[0.5, 0.5, 0.0]]), np.array([[0.5, 0.25, 0.25]])).tolist()
    [0.25]
    """
    return np.abs(first - second).sum(axis=1) / 2


def largest_gap(first: Shares, second: Shares) -> Effects:
    """The largest difference of the two distribution functions (Kolmogorov and Smirnov); for ordered values.

    Two normal distributions of one spread whose means differ by half of it have 0.20.

    >>> largest_gap(np.array([[0.5, 0.5, 0.0]]), np.array([[0.25, 0.25, 0.5]])).tolist()
    [0.5]
    """
    return np.abs(np.cumsum(first - second, axis=1)).max(axis=1)


def largest_difference(first: Shares, second: Shares) -> Effects:
    """The largest difference of one share; for values of which a row may have several.

    >>> largest_difference(np.array([[0.5, 0.5]]), np.array([[0.25, 0.625]])).tolist()
    [0.25]
    """
    return np.abs(first - second).max(axis=1)
