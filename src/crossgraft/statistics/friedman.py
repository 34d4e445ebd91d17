"""Friedman's test of several methods over several data sets, and Nemenyi's critical difference of mean ranks."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from crossgraft.errors import DataError

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
    return stats.rankdata(np.where(np.isnan(values), np.inf, -values), axis=1)


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
        raise DataError(
            f"Friedman's test needs two targets and three methods; there are {num_targets} and {num_methods}."
        )
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
        p_value=float(stats.chi2.sf(statistic, num_methods - 1)),
        critical_difference=difference,
        cliques=cliques(mean_ranks.tolist(), difference),
    )


def critical_difference(num_methods: int, num_targets: int, *, alpha: float = 0.05) -> float:
    """Nemenyi: mean ranks that differ by at least this much differ significantly.

    >>> round(critical_difference(7, 11), 3)
    2.716
    """
    q = float(stats.studentized_range.ppf(1 - alpha, num_methods, np.inf)) / np.sqrt(2)
    return float(q * np.sqrt(num_methods * (num_methods + 1) / (6 * num_targets)))


def cliques(mean_ranks: Sequence[float], difference: float) -> list[list[int]]:
    """Largest runs of methods in the order of their mean ranks that span less than ``difference``.

    Returns:
        Indices into ``mean_ranks``, best first; runs of one, and runs inside another, are left out.

    >>> cliques([3.0, 1.0, 1.5, 6.0], 2.1)
    [[1, 2, 0]]
    """
    order = sorted(range(len(mean_ranks)), key=lambda index: mean_ranks[index])
    found: list[list[int]] = []
    last_end = 0
    for start in range(len(order)):
        end = start
        while end < len(order) and mean_ranks[order[end]] - mean_ranks[order[start]] < difference:
            end += 1
        if end - start > 1 and end > last_end:
            found.append(order[start:end])
        last_end = max(last_end, end)
    return found
