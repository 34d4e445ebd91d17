"""Ranks in which ties share their mean."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64


def midranks(values: Float[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    """Rank of each value from 1, the smallest first; equal values have the mean of their ranks.

    The numbers of ``scipy.stats.rankdata``, whose import takes longer than most trainings of a linear head.

    Args:
        values: Finite or infinite, without NaN.

    >>> midranks(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    order = np.argsort(values, kind="stable")
    ascending = values[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(values), 1), dtype=bool), ascending[1:] != ascending[:-1]]))
    ends = np.append(starts[1:], len(values))[: len(starts)]
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(0.5 * (starts + ends + 1), ends - starts)
    return ranks
