"""One order from several scores, without any fitting."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy import stats

from crossgraft.errors import DataError

Scores = Float64[np.ndarray, "num_scores num_models"]
Order = Float64[np.ndarray, " num_models"]


def borda(scores: Scores) -> Order:
    """Minus the mean rank over the scores; larger = better, ties share their mean rank.

    Raises:
        DataError: No score, or a value that is not finite.

    Reference:
        Borda, Mémoire sur les élections au scrutin, 1781.
    """
    return -_ranks(scores).mean(axis=0)


def robust_rank_aggregation(scores: Scores) -> Order:
    """Minus the logarithm of the ρ score: whether a model is near the top of several lists more often than by chance.

    With r the relative ranks of one model in K lists, sorted: ρ = min(1, K · min_k P(U₍k₎ ≤ r₍k₎)), where the k-th of K
    uniform numbers is Beta(k, K − k + 1). Models with ρ = 1 are ordered by their mean rank below all others.

    Raises:
        DataError: No score, or a value that is not finite.

    Reference:
        Kolde et al., Robust rank aggregation for gene list integration and meta-analysis, Bioinformatics 2012, eq. 1–3.
    """
    ranks = _ranks(scores)
    num_scores, num_models = ranks.shape
    r = np.sort(ranks / num_models, axis=0)
    k = np.arange(1, num_scores + 1)[:, None]
    rho = np.minimum(1, num_scores * stats.beta.cdf(r, k, num_scores - k + 1).min(axis=0))
    return -np.log(rho) - 1e-9 * ranks.mean(axis=0)


def _ranks(scores: Scores) -> Scores:
    if len(scores) == 0:
        raise DataError("A consensus needs at least one score.")
    if not np.isfinite(scores).all():
        raise DataError("A consensus needs a finite value of every score; leave out models or scores without one.")
    return stats.rankdata(-scores, axis=1)
