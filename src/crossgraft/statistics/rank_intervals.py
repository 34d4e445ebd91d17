"""Ranks that a model can have, given the uncertainty of the differences of the scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float, Float64

from crossgraft.errors import DataError, UsageError

MethodRanks = Float[np.ndarray, "num_targets num_methods"]
MethodMeans = Float[np.ndarray, " num_methods"]


class Friedman(NamedTuple):
    """Mean ranks (1 = best) and what can be said about their differences."""

    mean_ranks: MethodMeans
    statistic: float
    p_value: float
    critical_difference: float
    cliques: list[list[int]]
    """Largest groups of methods, best first, of which no two differ by the critical difference or more."""


def method_ranks(values: Float[np.ndarray, "num_targets num_methods"]) -> MethodRanks:
    """Rank the methods on each target: 1 = largest value; ties share their mean rank, undefined values come last.

    >>> method_ranks(np.array([[0.3, 0.5, float("nan")]])).tolist()
    [[2.0, 1.0, 3.0]]
    """
    return scipy.stats.rankdata(np.where(np.isnan(values), np.inf, -values), axis=1)


def friedman(values: Float[np.ndarray, "num_targets num_methods"], *, alpha: float = 0.05) -> Friedman:
    """Friedman's test over targets with Nemenyi's critical difference.

    χ²_F = (k−1)·Σ_j (R_j − N(k+1)/2)² / Σ_ij (r_ij − (k+1)/2)² with k − 1 degrees of freedom, R_j the sum of the ranks
    r_ij of method j: the form that allows ties. CD = q_α · √(k(k+1)/(6N)), q_α the studentised range of k methods and
    infinite degrees of freedom divided by √2: 2.948 for seven methods at α = 0.05, hence 2.716 for eleven targets.

    Args:
        values: Larger = better, for example a rank correlation; NaN = undefined, ranked last.
        alpha: Error rate of the critical difference.

    Returns:
        Mean ranks, test and critical difference.

    Raises:
        DataError: Fewer than two targets or three methods, an infinite value, or all methods tie everywhere.

    Reference:
        Demšar, Statistical comparisons of classifiers over multiple data sets, JMLR 2006, sec. 3.2.2.
    """
    num_targets, num_methods = values.shape
    if num_targets < 2 or num_methods < 3:
        raise DataError(f"Friedman's test needs two targets and three methods; there are {num_targets} and {num_methods}.")
    if np.isinf(values).any():
        raise DataError("The values to compare must be finite, or NaN where a method has none.")
    return friedman_of_ranks(method_ranks(values), alpha=alpha)


def friedman_of_ranks(ranks: MethodRanks, *, alpha: float = 0.05) -> Friedman:
    """As ``friedman``, from ranks that were printed somewhere.

    Raises:
        DataError: All methods tie on every target.
    """
    num_targets, num_methods = ranks.shape
    mean_ranks = ranks.mean(axis=0)
    centre = (num_methods + 1) / 2
    between = num_targets**2 * np.sum((mean_ranks - centre) ** 2)
    spread = np.sum((ranks - centre) ** 2)  # N·k(k²−1)/12 without ties, less with them
    if spread == 0:
        raise DataError("All methods tie on every target; there is nothing to compare.")
    statistic = float((num_methods - 1) * between / spread)
    difference = critical_difference(num_methods, num_targets, alpha=alpha)
    return Friedman(
        mean_ranks=mean_ranks,
        statistic=statistic,
        p_value=float(scipy.stats.chi2.sf(statistic, num_methods - 1)),
        critical_difference=difference,
        cliques=cliques(mean_ranks.tolist(), difference),
    )


def critical_difference(num_methods: int, num_targets: int, *, alpha: float = 0.05) -> float:
    """Nemenyi: mean ranks that differ by at least this much differ significantly.

    >>> round(critical_difference(7, 11), 3)
    2.716
    """
    q = float(scipy.stats.studentized_range.ppf(1 - alpha, num_methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(num_methods * (num_methods + 1) / (6 * num_targets)))


def cliques(mean_ranks: Sequence[float], difference: float) -> list[list[int]]:
    """Largest runs of methods in the order of their mean ranks that span less than ``difference``.

    Returns:
        Indices into ``mean_ranks``, best first; runs of one, and runs inside another, are left out.

    >>> cliques([3.0, 1.0, 1.5, 6.0], 2.1)
    [[1, 2, 0]]
    """
    order = sorted(range(len(mean_ranks)), key=lambda index: mean_ranks[index])
    groups: list[list[int]] = []
    last_end = 0
    for start in range(len(order)):
        end = start
        while end < len(order) and mean_ranks[order[end]] - mean_ranks[order[start]] < difference:
            end += 1
        if end - start > 1 and end > last_end:
            groups.append(order[start:end])
        last_end = max(last_end, end)
    return groups


Ties = Literal["ci", "exact"]
PerDataSet = Float[np.ndarray, "num_datasets num_methods"]


def leaderboard_ranks(means: PerDataSet, half_widths: PerDataSet, *, ties: Ties = "ci") -> Float64[np.ndarray, " num_methods"]:
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


class RankInterval(NamedTuple):
    """Rank of one model (1 = best) and the best and worst rank that the data allow."""

    rank: float
    low: int
    high: int


def rank_intervals(
    values: Float[np.ndarray, " num_models"], replicates: Float64[np.ndarray, "num_models num_blocks"], *, alpha: float = 0.05
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
    quantile = float(scipy.stats.t.ppf(1 - alpha / (2 * max(num_models - 1, 1)), num_blocks - 1))
    ranks = scipy.stats.rankdata(-values)
    intervals: list[RankInterval] = []
    for m in range(num_models):
        gaps = values - values[m]
        changes = replicates - replicates[m]
        centred = changes - changes.mean(axis=1, keepdims=True)
        half_widths = quantile * np.sqrt((num_blocks - 1) / num_blocks * np.sum(centred**2, axis=1))
        num_better, num_worse = int(np.sum(gaps > half_widths)), int(np.sum(gaps < -half_widths))
        intervals.append(RankInterval(float(ranks[m]), 1 + num_better, num_models - num_worse))
    return intervals
