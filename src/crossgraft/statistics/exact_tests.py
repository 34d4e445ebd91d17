"""Exact tests of a few values, such as results of folds: every way to deal them out is tried."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from crossgraft.errors import DataError

Values = Float[np.ndarray, " _"]
MOST_WAYS = 2_000_000
_AT_ONCE = 50_000
_ROUNDING = 1e-12


class ExactTest(NamedTuple):
    """A test without assumptions about a distribution.

    Attributes:
        p_value: Two-sided.
        floor: Smallest p-value that so few values can give: 2 / 252 for five against five.
    """

    p_value: float
    floor: float


class MeanInterval(NamedTuple):
    """A mean of folds with its interval of 95 % by Student's t; no ends below three values."""

    mean: float
    low: float | None
    high: float | None


def two_sample_permutation(first: Values, second: Values) -> ExactTest:
    """The share of all ways to deal the values into two groups whose means differ at least as much as these.

    The statistic |mean − mean| orders these ways as the t of pooled variance does.

    Args:
        first: (n,) values.
        second: (m,) other values, not paired with the first.

    Raises:
        DataError: A group is empty, a value is not finite, or there are more than ``MOST_WAYS`` ways.

    Source: exact permutation test of |difference of means|. For groups of other sizes the two-sided test of
    ``scipy.stats.permutation_test``, which doubles the smaller tail, gives another value.
    """
    a, b = _finite(first, "first"), _finite(second, "second")
    pooled, number, size = np.r_[a, b], len(a) + len(b), len(a)
    ways = math.comb(number, size)
    _refuse_many(ways, f"{size} and {len(b)} values")
    total = float(pooled.sum())
    observed = float(_apart(np.array([a.sum()]), total, size, number)[0])
    hits = 0
    every = combinations(range(number), size)
    while chosen := list(islice(every, _AT_ONCE)):
        found = _apart(pooled[np.array(chosen)].sum(axis=1), total, size, number)
        hits += int((found >= observed - _tolerance(pooled)).sum())
    return ExactTest(hits / ways, (2 if len(a) == len(b) else 1) / ways if ways > 1 else 1.0)


def sign_flip(differences: Values) -> ExactTest:
    """The share of all ways to flip signs of paired differences whose mean is at least as far from 0.

    Args:
        differences: (n,) one per fold or task.

    Raises:
        DataError: There is none, one is not finite, or there are more than ``MOST_WAYS`` ways.

    Source: Fisher, The Design of Experiments, 1935.
    """
    values = _finite(differences, "differences")
    ways = 2 ** len(values)
    _refuse_many(ways, f"{len(values)} differences")
    observed, hits = abs(values.sum()), 0
    for signs in _signs(len(values)):
        hits += int((np.abs(signs @ values) >= observed - _tolerance(values)).sum())
    return ExactTest(hits / ways, 2 / ways)


def mean_interval(values: Values, *, confidence: float = 0.95) -> MeanInterval:
    """Mean of folds, with an interval by Student's t with n − 1 degrees of freedom.

    A percentile bootstrap of five values covers 84 % instead of 95 %.

    Raises:
        DataError: There is no value, or one is not finite.
    """
    known = _finite(values, "values")
    mean = float(known.mean())
    if len(known) < 3:
        return MeanInterval(mean, None, None)
    half = float(stats.t.ppf((1 + confidence) / 2, len(known) - 1) * known.std(ddof=1) / math.sqrt(len(known)))
    return MeanInterval(mean, mean - half, mean + half)


def _apart(sums: np.ndarray, total: float, size: int, number: int) -> np.ndarray:
    """|mean − mean| by the sum of the first group."""
    return np.abs(sums / size - (total - sums) / (number - size))


def _signs(number: int) -> Iterator[np.ndarray]:
    """(ways, number) of ±1, in pieces."""
    places = np.arange(number)
    for first in range(0, 2**number, _AT_ONCE):
        codes = np.arange(first, min(first + _AT_ONCE, 2**number))
        yield 1.0 - 2.0 * (codes[:, None] >> places & 1)


def _tolerance(values: np.ndarray) -> float:
    """Equal statistics count as hits whatever the order of the additions."""
    return _ROUNDING * float(np.abs(values).max())


def _finite(values: Values, name: str) -> np.ndarray:
    known = np.asarray(values, dtype=np.float64)
    if known.ndim != 1 or not len(known) or not np.isfinite(known).all():
        raise DataError(f"{name} must be at least one finite value, got {known.tolist()!r}.")
    return known


def _refuse_many(ways: int, what: str) -> None:
    if ways > MOST_WAYS:
        raise DataError(
            f"{what} can be dealt out in {ways} ways, too many to try them all. This test is for a few folds."
        )
