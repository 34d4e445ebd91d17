"""How unlike the others a target is: the factor λ of what networks bring to it alone is inferred from what was seen.

A priori 1/λ ~ χ²_τ/(τ − 2), of mean 1 (``target_effects``). λ is taken on a grid of its logarithm, each value weighed by its
prior density times the restricted likelihood of the observations (levels integrated out, each kind at the scale that it has
under λ). The belief is then a scale mixture of normals (Andrews and Mallows, Journal of the Royal Statistical Society B 36
(1974) 99): before anything is seen a Student t.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy import stats

from crossgraft.rank.conditioning import Observed, Square, condition
from crossgraft.rank.standing import Standing

NUM_FACTORS = 7
BEYOND = 0.005
"""Probability of λ below, and above, the grid."""
LEAST_WEIGHT = 1e-4
"""Parts with less are left out."""


class BeliefPart(NamedTuple):
    """The belief at one value of λ."""

    weight: float
    mean: Float64[np.ndarray, " num_models"]
    covariance: Square


class BeliefMixture(NamedTuple):
    """The belief.

    Attributes:
        parts: Normal distributions; their weights add up to 1.
        in_metric: Whether results are in the metric's unit, else in normal scores.
        factor: Expected λ.
    """

    parts: tuple[BeliefPart, ...]
    in_metric: bool
    factor: float

    def moments(self) -> tuple[Float64[np.ndarray, " num_models"], Square]:
        """Mean and covariance."""
        mean = np.sum([part.weight * part.mean for part in self.parts], axis=0)
        each = [w * (c + np.outer(m - mean, m - mean)) for w, m, c in self.parts]
        return mean, np.sum(each, axis=0)


def mixture(
    prior: Standing, kinds: Sequence[Observed], *, without_group: str | None, metric: str | None = None
) -> BeliefMixture:
    """The belief about the results given all kinds."""
    factors, weights = _factors(prior.freedom)
    found = [
        condition(prior._replace(specific=factor * prior.specific), kinds, without_group=without_group, metric=metric)
        for factor in factors.tolist()
    ]
    logs = np.log(weights) + np.array([each.log_evidence for each in found])
    weights = np.exp(logs - logs.max())
    weights = np.where(weights < LEAST_WEIGHT * weights.sum(), 0.0, weights)
    weights /= weights.sum()
    rows = zip(weights.tolist(), found, strict=True)
    parts = tuple(BeliefPart(weight, each.mean, each.covariance) for weight, each in rows if weight > 0)
    return BeliefMixture(parts, found[0].in_metric, float(weights @ factors))


@lru_cache(maxsize=256)
def _factors(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """The grid of λ, of mean 1, and its prior weights; λ = 1 alone where it is known."""
    if not np.isfinite(freedom):
        return np.ones(1), np.ones(1)
    low, high = stats.chi2.ppf([BEYOND, 1 - BEYOND], freedom)
    inverse = np.exp(np.linspace(np.log(high), np.log(low), NUM_FACTORS))
    weights = inverse * stats.chi2.pdf(inverse, freedom)  # density of the logarithm
    weights /= weights.sum()
    return 1 / inverse / float(weights @ (1 / inverse)), weights
