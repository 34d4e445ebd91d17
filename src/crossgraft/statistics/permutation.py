"""Permutation tests of rank agreement."""

import math
from collections.abc import Callable, Sequence
from itertools import permutations

import numpy as np
from jaxtyping import Float

from crossgraft.seeding import generator

EXACT_UP_TO = 7
"""With up to this many values all orders are tried (7! = 5040)."""


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
        seed: Of the random orders.

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
