"""Do two samples come from one distribution? A permutation test that moves whole groups, for several quantities at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.seeding import generator

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
    table = np.hstack([num_rows[:, np.newaxis], *(each.counts for each in quantities)]).astype(np.float32)
    ends = np.cumsum([1, *(each.counts.shape[1] for each in quantities)])

    def effects(second: np.ndarray) -> list[Effects]:
        of_second = (second.astype(np.float32) @ table).astype(np.float64)
        of_first = table.sum(axis=0, dtype=np.float64) - of_second
        first, second_shares = (sums / sums[:, :1] for sums in (of_first, of_second))
        return [
            each.effect(first[:, start:end], second_shares[:, start:end])
            for each, start, end in zip(quantities, ends[:-1], ends[1:], strict=True)
        ]

    observed = [float(each[0]) for each in effects(in_second[np.newaxis])]
    rng = generator(seed, "two samples")
    hits = np.zeros(len(quantities))
    for start in range(0, num_permutations, _PERMUTATIONS_AT_ONCE):
        number = min(_PERMUTATIONS_AT_ONCE, num_permutations - start)
        permuted = effects(np.stack([rng.permutation(in_second) for _ in range(number)]))
        hits += [(each >= value - _TOLERANCE).sum() for each, value in zip(permuted, observed, strict=True)]
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
