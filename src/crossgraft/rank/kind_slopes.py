"""Slopes of cheap trainings on what networks bring to every target and to one, with errors in all variables.

On each target, with p the prior of the other groups and means over networks taken out,

    z = ω + e + η,    ω ~ N(p, V_p),    g = c·ω + d·e + ε + ξ

where η and ξ are the errors of published means over few seeds (known variances V_η and V_ξ). Least squares of g on z would find
the slope of what is left of z, errors among it, and so one that is drawn to 0 where networks hardly differ. With covariances
pooled over targets, r_z = z − p and r_g = g − c·p, moments give (Fuller, Measurement error models, 1987, §1.2)

    c = Cov(g, p) / Var(p)
    V_e = (Var(r_z) − V_η) / (1 + 1/(n + 1)),    V_p = V_e/(n + 1)    for n known groups
    d = (Cov(r_g, r_z) − c·V_p) / V_e
    ν² = Var(r_g) − c²·V_p − d²·V_e − V_ξ + Var(d)·V_e

What a training of the same network with another seed does not repeat is η: of the variance of a result on one target beyond ω,
cheap trainings tell of the repeatable share ρ = V_e/(V_e + V_η) alone.

Slopes have the weak prior N(½, ½²), halfway between saying nothing (0) and being the whole training (1); their variances are
those of the jackknife over groups. What one metric differs by from all together is shrunk by its own jackknife, as scores are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

PRIOR_MEAN, PRIOR_VARIANCE = 0.5, 0.25
LEAST_NOISE = 0.05
"""Variance that is left to all else, where moments leave none; of 1."""


class CheapTraining(NamedTuple):
    """A cheap training of some networks on one target.

    Attributes:
        group: Group of the target.
        metric: Metric of both results.
        values: g, standardised.
        prior: p, the prior of the other groups.
        results: z, the normal scores of the whole training.
        num_known: n, groups that the prior is of.
        error: V_ξ, variance of the errors of g.
        result_error: V_η, that of the errors of z.
    """

    group: str
    metric: str
    values: Float64[np.ndarray, " num_models"]
    prior: Float64[np.ndarray, " num_models"]
    results: Float64[np.ndarray, " num_models"]
    num_known: float
    error: float
    result_error: float


class _Moments(NamedTuple):
    """Pooled over targets: covariances of p, z and g; variances of errors of g and of z, of e and of ω given p."""

    covariance: np.ndarray
    error: float
    result_error: float
    specific: float
    general: float

    def slopes(self) -> np.ndarray:
        """C and d."""
        pp, pz, pg, zg = (self.covariance[i, j] for i, j in ((0, 0), (0, 1), (0, 2), (1, 2)))
        c = pg / pp
        return np.array([c, ((zg - pg) - c * (pz - pp) - c * self.general) / self.specific])

    def noise(self, c: float, d: float) -> float:
        """Variance of g beyond both slopes and its errors."""
        pp, pg, gg = self.covariance[0, 0], self.covariance[0, 2], self.covariance[2, 2]
        return gg - 2 * c * pg + c**2 * pp - c**2 * self.general - d**2 * self.specific - self.error


def training_slopes(measured: Sequence[CheapTraining], metric: str | None) -> tuple[float, float, float, float]:
    """c, d, ν and ρ of one kind, for results in ``metric``; of all metrics together where it is None."""
    own = [each for each in measured if each.metric == metric] if metric is not None else list(measured)
    whole, variance = _estimated(measured, lambda kept: _moments(kept).slopes())
    if len(own) < len(measured):

        def difference(kept: Sequence[CheapTraining]) -> np.ndarray:
            mine = [each for each in kept if each.metric == metric]
            return _moments(mine).slopes() - _moments(kept).slopes()

        further, doubt = _estimated(measured, difference)
        share = np.maximum(0.0, 1 - doubt / np.maximum(further**2, 1e-12))
        whole, variance = whole + share * further, variance + share**2 * doubt
    weight = 1 / (1 + variance / PRIOR_VARIANCE)
    c, d = np.maximum(weight * whole + (1 - weight) * PRIOR_MEAN, 0.0)
    moments = _moments(own)
    noise = moments.noise(float(c), float(d)) + float(weight[1] * variance[1]) * moments.specific
    repeatable = float(moments.specific / (moments.specific + moments.result_error))
    return float(c), float(d), float(np.sqrt(max(noise, LEAST_NOISE))), repeatable


def jackknife_variance(estimate: Callable[[Sequence[int]], np.ndarray], labels: Sequence[str]) -> np.ndarray:
    """Variance of an estimate from cells, leaving out all cells of one label at a time."""
    names = list(dict.fromkeys(labels))
    without = np.array([estimate([i for i, label in enumerate(labels) if label != name]) for name in names])
    return (len(names) - 1) / len(names) * ((without - without.mean(axis=0)) ** 2).sum(axis=0)


def _estimated(
    measured: Sequence[CheapTraining], estimate: Callable[[Sequence[CheapTraining]], np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """An estimate and its variance by the jackknife over groups."""
    groups = [each.group for each in measured]
    return estimate(measured), jackknife_variance(lambda kept: estimate([measured[i] for i in kept]), groups)


def _moments(measured: Sequence[CheapTraining]) -> _Moments:
    rows = [np.stack([each.prior, each.results, each.values]) for each in measured]
    centred = [each - each.mean(axis=1, keepdims=True) for each in rows]
    freedom = sum(each.shape[1] - 1 for each in rows)
    covariance = np.asarray(sum(each @ each.T for each in centred)) / freedom
    share = float(np.mean([1 / (each.num_known + 1) for each in measured]))
    left = covariance[1, 1] - 2 * covariance[0, 1] + covariance[0, 0]
    error, result_error = (
        float(np.mean([getattr(each, name) for each in measured])) for name in ("error", "result_error")
    )
    specific = max((left - result_error) / (1 + share), 0.1 * left)
    return _Moments(covariance, error, result_error, specific, share * specific)
