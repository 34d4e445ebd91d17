"""Ranks that a model can have, given the uncertainty of the differences of the scores."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from scipy import stats

from crossgraft.errors import DataError


class RankInterval(NamedTuple):
    """Rank of one model (1 = best) and the best and worst rank that the data allow."""

    rank: float
    low: int
    high: int


def rank_intervals(
    values: Float[np.ndarray, " num_models"],
    replicates: Float64[np.ndarray, "num_models num_blocks"],
    *,
    alpha: float = 0.05,
) -> list[RankInterval]:
    """Confidence intervals of ranks from leave-one-block-out values.

    A model is surely worse than those whose difference to it has an interval above 0, and surely better than those
    with one below: rank ∈ [1 + #surely better ones, M − #surely worse ones]. The difference of two models is taken
    block by block, so what the images have in common cancels; the M − 1 comparisons of one model share ``alpha``
    (Bonferroni), so that its interval holds its true rank with probability ≥ 1 − alpha.

    Args:
        values: One score per model, larger = better.
        replicates: The score without block b; the same blocks for all models.
        alpha: Error rate for each model.

    Returns:
        One interval a model, in the order of ``values``; tied models share their mean rank.

    Raises:
        DataError: A number is not finite, the shapes do not fit, or there are fewer than two blocks.

    Reference:
        Mogstad, Romano, Shaikh and Wilhelm, Inference for ranks, Review of Economic Studies 2024, sec. 3.

    >>> blocks = np.array([[3.0, 3.1], [2.0, 2.1], [1.9, 2.1]])
    >>> [(round(r), low, high) for r, low, high in rank_intervals(blocks.mean(axis=1), blocks, alpha=0.2)]
    [(1, 1, 1), (2, 2, 3), (3, 2, 3)]
    """
    num_models, num_blocks = replicates.shape
    if len(values) != num_models or num_blocks < 2:
        raise DataError(
            f"Rank intervals need one row of at least two replicates per model; there are {len(values)} models and "
            f"{num_models} rows of {num_blocks}."
        )
    if not (np.isfinite(values).all() and np.isfinite(replicates).all()):
        raise DataError("Values and replicates must be finite; leave out models without a value.")
    quantile = float(stats.t.ppf(1 - alpha / (2 * max(num_models - 1, 1)), num_blocks - 1))
    ranks = stats.rankdata(-values)
    found: list[RankInterval] = []
    for m in range(num_models):
        gaps = values - values[m]
        changes = replicates - replicates[m]
        centred = changes - changes.mean(axis=1, keepdims=True)
        half_widths = quantile * np.sqrt((num_blocks - 1) / num_blocks * np.sum(centred**2, axis=1))
        num_better, num_worse = int(np.sum(gaps > half_widths)), int(np.sum(gaps < -half_widths))
        found.append(RankInterval(float(ranks[m]), 1 + num_better, num_models - num_worse))
    return found
