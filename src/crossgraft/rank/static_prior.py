"""The ranking that never looks at the target: how the models did on other targets.

Every score has to be judged against it: on the published benchmarks it foresees fine-tuning better than most scores do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.types import History


class StaticPrior(NamedTuple):
    """Mean relative rank of each model on the other targets, and on how many it is known."""

    mean_ranks: Float64[np.ndarray, " num_models"]
    num_known: Int[np.ndarray, " num_models"]

    @property
    def values(self) -> Float64[np.ndarray, " num_models"]:
        """Larger = better; models without history stand where a middling one does."""
        return -np.where(self.num_known > 0, self.mean_ranks, 0.5)


def relative_ranks(results: History) -> History:
    """(rank − ½)/n of each model among the n that are known on a target: from 1/(2n) = best; ties share.

    >>> relative_ranks(np.array([[0.9, np.nan, 0.7]]))
    array([[0.25,  nan, 0.75]])
    """
    num_known = np.isfinite(results).sum(axis=1, keepdims=True)
    ranks = stats.rankdata(-results, axis=1, nan_policy="omit")
    return (ranks - 0.5) / num_known


def static_prior(history: History) -> StaticPrior:
    """Mean relative rank over the targets of ``history``.

    Only the columns of ``history`` are ranked against each other, so give it the models that are to be ordered.

    Args:
        history: Results on *other* targets, larger = better; leave out targets related to the one at hand.

    Raises:
        DataError: An infinite value.

    Reference:
        Singh, Hess and Vanschoren, arXiv 2510.06448: such a ranking is the baseline that scores have to beat.
    """
    if np.isinf(history).any():
        raise DataError("The history holds an infinite result.")
    known = np.isfinite(history)
    num_known = known.sum(axis=0)
    rows = history[known.any(axis=1)]
    ranks = relative_ranks(rows) if len(rows) else history
    total = np.nansum(ranks, axis=0) if len(rows) else np.zeros(history.shape[1])
    means = np.where(num_known > 0, total / np.maximum(num_known, 1), np.nan)
    return StaticPrior(means, num_known)
