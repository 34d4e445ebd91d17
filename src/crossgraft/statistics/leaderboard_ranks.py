"""Average ranks of methods over data sets, where methods within each other's intervals may share a rank."""

from __future__ import annotations

from typing import Literal

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.errors import DataError, UsageError

Ties = Literal["ci", "exact"]
PerDataSet = Float[np.ndarray, "num_datasets num_methods"]


def leaderboard_ranks(
    means: PerDataSet, half_widths: PerDataSet, *, ties: Ties = "ci"
) -> Float64[np.ndarray, " num_methods"]:
    """Mean rank of each method, 1 = best.

    With ``ci``, the rule of Meta-Dataset's leaderboard: of the methods that are left the best one takes the next rank, together
    with all that are not separable from it, |difference| ≤ √(h₁² + h₂²); they share the mean of their ranks; and so on.

    Args:
        means: Accuracy of each method on each data set.
        half_widths: Half of the width of its interval of 95 %.
        ties: ``ci``, or ``exact``: only equal means share a rank.

    Raises:
        DataError: Shapes differ, or a value is not finite.
        UsageError: The rule is not known.

    Cost: D·M² comparisons.

    Source: the leaderboard of Meta-Dataset (github.com/google-research/meta-dataset).

    Example:
        >>> leaderboard_ranks(np.array([[90.0, 89.5, 80.0]]), np.array([[0.5, 0.5, 0.5]]))
        array([1.5, 1.5, 3. ])
    """
    means, half_widths = np.asarray(means, dtype=np.float64), np.asarray(half_widths, dtype=np.float64)
    if means.ndim != 2 or means.shape != half_widths.shape or means.size == 0:
        raise DataError(f"means {means.shape} and half_widths {half_widths.shape} must be one table of equal shape.")
    if not (np.isfinite(means).all() and np.isfinite(half_widths).all()):
        raise DataError("means and half_widths must be finite; leave out methods or data sets without a value.")
    if ties not in ("ci", "exact"):
        raise UsageError(f"ties must be ci or exact, got {ties!r}.")
    tolerated = half_widths if ties == "ci" else np.zeros_like(half_widths)
    return np.mean([_ranks(*pair) for pair in zip(means, tolerated, strict=True)], axis=0)


def _ranks(means: np.ndarray, half_widths: np.ndarray) -> np.ndarray:
    ranks, left, taken = np.empty(len(means)), np.arange(len(means)), 0
    while len(left):
        best = left[np.lexsort((half_widths[left], means[left]))[-1]]  # of equal means the one that is less sure
        is_tied = means[best] - means[left] <= np.hypot(half_widths[best], half_widths[left])
        num_tied = int(is_tied.sum())
        ranks[left[is_tied]] = taken + (num_tied + 1) / 2
        left, taken = left[~is_tied], taken + num_tied
    return ranks
