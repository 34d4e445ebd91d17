"""The evidence of Bayesian linear regression, maximised over its two precisions, for many targets at once.

Everything follows from the eigenvalues σ of XᵀX and, for each target column t, the squared projections
e = (Vᵀ Xᵀ t)² on its eigenvectors; X itself is not needed. For a given ratio τ = α/β of prior to noise precision the best β
is n/R with R = ‖t − Xm‖² + τ‖m‖² = r₀ + Σ (e/σ) τ/(σ+τ), r₀ what lies outside the features, so that one variable is left:

    log p(t | τ) = −½ Σ ln(1 + σ/τ) − n/2 ln(2π R/n) − n/2

τ has the unit of σ, so the maximum over τ does not depend on the scale of the features. The function can have several
local maxima; a grid over all τ that can matter finds the highest, Newton's method on ln τ its place.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

# LogME's fixed point as its authors released it; only for comparing with published tables.
#
# Of three constants none follows from the evidence: α and β start at 1, the iteration stops after 11 steps, and 1e-5 is added to
# ‖m‖² and ‖t − Xm‖². ‖m‖² has the unit of 1/σ, so the result depends on the scale of the features.

_EPSILON = 1e-5
"""Keeps α and β finite when a target is fitted perfectly."""
_MAX_ITERATIONS = 11
_RELEASED_TOLERANCE = 1e-3
"""Relative change of α/β at which a column is done."""

PerTarget = Float64[np.ndarray, " num_targets"]


class FixedPoint(NamedTuple):
    """Where the iteration of each target column ended.

    Attributes:
        log_evidence: log p(t | X, α, β) / n.
        log_prior_precision: ln α.
        ratio: α/β, which eigenvalues are compared with.
        num_iterations: Steps taken.
        converged: Whether α/β settled.
    """

    log_evidence: PerTarget
    log_prior_precision: PerTarget
    ratio: PerTarget
    num_iterations: Int[np.ndarray, " num_targets"]
    converged: Bool[np.ndarray, " num_targets"]


def iterate_as_released(
    spectrum: Float64[np.ndarray, " num_directions"],
    projections: Float64[np.ndarray, "num_directions num_targets"],
    target_norms: PerTarget,
    num_samples: int,
) -> FixedPoint:
    """Fixed-point iteration of You et al. (JMLR 2022, algorithm 3), on all columns at once.

    Args:
        spectrum: Eigenvalues σ ≥ 0 of XᵀX; zero ones may be left out.
        projections: e = (vᵀ Xᵀ t)² for each eigenvector v and target column t.
        target_norms: ‖t‖² of each column: n_c for one-hot columns, anything for regression.
        num_samples: n.
    """
    is_positive = spectrum > 0
    spectrum, projections = spectrum[is_positive, None], projections[is_positive]
    ratio = np.ones_like(target_norms)  # τ = α/β, starting from α = β = 1
    log_evidence = np.zeros_like(ratio)
    log_alpha = np.zeros_like(ratio)
    num_iterations = np.zeros(len(ratio), dtype=np.int64)
    active = np.ones(len(ratio), dtype=bool)
    for _ in range(_MAX_ITERATIONS):
        column = np.flatnonzero(active)
        step = _fixed_point_step(spectrum, projections[:, column], target_norms[column], num_samples, ratio[column])
        log_evidence[column], log_alpha[column], new_ratio = step
        num_iterations[column] += 1
        active[column] = np.abs(new_ratio - ratio[column]) > _RELEASED_TOLERANCE * ratio[column]
        ratio[column] = new_ratio
        if not active.any():
            break
    return FixedPoint(log_evidence, log_alpha, ratio, num_iterations, ~active)


def _fixed_point_step(
    spectrum: np.ndarray, projections: np.ndarray, target_norms: np.ndarray, num_samples: int, ratio: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """New α and β from τ = α/β, the evidence at them (divided by n), ln α, and the new τ."""
    shrunk = spectrum + ratio
    unexplained = (ratio / shrunk).sum(axis=0)
    effective = (spectrum / shrunk).sum(axis=0)  # γ, the effective number of parameters
    remaining = num_samples - len(spectrum) + unexplained  # n − γ without cancellation
    weights = (projections / shrunk**2).sum(axis=0)  # ‖m‖²
    residual = target_norms - (projections * (shrunk + ratio) / shrunk**2).sum(axis=0)  # ‖t − Xm‖²
    residual = np.maximum(residual, 0.0)
    alpha = effective / (weights + _EPSILON)
    beta = remaining / (residual + _EPSILON)
    new_ratio = alpha / beta
    with np.errstate(divide="ignore"):  # without any direction α = 0, and no term below uses ln α
        log_alpha = np.log(alpha)
    # d/2 ln α − ½ Σ_d ln(α + βσ) = −½ Σ ln(1 + σ/τ): directions without variance drop out.
    log_evidence = (
        num_samples / 2 * np.log(beta)
        - np.log1p(spectrum / new_ratio).sum(axis=0) / 2
        - beta * residual / 2
        - alpha * weights / 2
        - num_samples / 2 * np.log(2 * np.pi)
    )
    return log_evidence / num_samples, log_alpha, new_ratio


SMALLEST_RESIDUAL = 1e-10
"""Share of a target that always counts as unexplained, where fewer directions than images explain it: a target that they fit
perfectly has no finite evidence."""
_STEPS_A_DECADE = 4
"""Points of the grid: a term of the evidence changes over about a decade of τ."""
_BEYOND_THE_LARGEST = 1e6
"""The grid ends at so many times the largest eigenvalue; what follows is τ = ∞, weights of 0."""
_MAX_STEPS = 100
_TOLERANCE = 1e-6
"""Change of ln τ at which a column has settled; the evidence is flat there, so it is known to about its square."""


class MaximisedEvidence(NamedTuple):
    """The maximised evidence of each target column.

    Attributes:
        log_evidence: log p(t | X, α, β) / n.
        ratio: α/β, which eigenvalues are compared with; ∞ where features explain nothing of the target.
        num_iterations: Newton steps taken.
        converged: Whether α/β settled.
        overshoot: How much more than the whole target its directions explain, by rounding, as a share of R: twice the error of
            the evidence.
    """

    log_evidence: PerTarget
    ratio: PerTarget
    num_iterations: Int[np.ndarray, " num_targets"]
    converged: Bool[np.ndarray, " num_targets"]
    overshoot: PerTarget


class _Regression(NamedTuple):
    """What the evidence of each target is a function of.

    Attributes:
        spectrum: (k, 1), σ > 0.
        explained: (k, targets), e/σ: what each direction can explain of each target.
        outside: r₀ ≥ 0.
        overshoot: What was taken as 0 where rounding made r₀ negative.
        target_norms: ‖t‖².
        num_samples: n.
    """

    spectrum: np.ndarray
    explained: np.ndarray
    outside: np.ndarray
    overshoot: np.ndarray
    target_norms: np.ndarray
    num_samples: int

    def of(self, columns: np.ndarray) -> _Regression:
        """The same of some targets."""
        return self._replace(
            explained=self.explained[:, columns],
            outside=self.outside[columns],
            overshoot=self.overshoot[columns],
            target_norms=self.target_norms[columns],
        )

    def unexplained(self, inside: np.ndarray) -> np.ndarray:
        """R from what is left of the explained part."""
        return self.outside + inside


def maximise_evidence(
    spectrum: Float64[np.ndarray, " num_directions"],
    projections: Float64[np.ndarray, "num_directions num_targets"],
    target_norms: PerTarget,
    num_samples: int,
) -> MaximisedEvidence:
    """The highest evidence of each column over both precisions.

    Args:
        spectrum: Eigenvalues σ ≥ 0 of XᵀX; zero ones may be left out.
        projections: e = (vᵀ Xᵀ t)² for each eigenvector v and target column t.
        target_norms: ‖t‖² of each column: n_c for one-hot columns, anything for regression.
        num_samples: n.
    """
    regression = _regression(spectrum, projections, target_norms, num_samples)
    nothing_explained = _log_evidence(np.zeros(1), target_norms, num_samples)
    if len(regression.spectrum) == 0:
        settled, zeros = np.ones(len(target_norms), dtype=bool), np.zeros(len(target_norms))
        return MaximisedEvidence(nothing_explained, np.full(len(settled), np.inf), zeros.astype(int), settled, zeros)
    grid = _grid(regression.spectrum, num_samples)
    on_grid = _on_grid(regression, grid)
    best = on_grid.argmax(axis=0)
    below, above = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, len(grid) - 1)]
    log_ratio, num_steps, converged = _refine(regression, below, grid[best], above)
    log_evidence, ratio = _at(regression, log_ratio), np.exp(log_ratio)
    overshoot = regression.overshoot / _unexplained_at(regression, log_ratio)
    is_nothing = nothing_explained > log_evidence
    return MaximisedEvidence(
        np.where(is_nothing, nothing_explained, log_evidence),
        np.where(is_nothing, np.inf, ratio),
        num_steps,
        converged | is_nothing,
        np.where(is_nothing, regression.overshoot / target_norms, overshoot),
    )


def evidence_at(
    spectrum: Float64[np.ndarray, " num_directions"],
    projections: Float64[np.ndarray, "num_directions num_targets"],
    target_norms: PerTarget,
    num_samples: int,
    ratio: float,
) -> PerTarget:
    """The evidence of each column, divided by n, at one α/β and the best β for it; arguments as of ``maximise_evidence``."""
    regression = _regression(spectrum, projections, target_norms, num_samples)
    return _at(regression, np.full(len(target_norms), math.log(ratio)))


def _regression(spectrum: np.ndarray, projections: np.ndarray, target_norms: np.ndarray, num_samples: int) -> _Regression:
    is_positive = spectrum > 0
    sigma = spectrum[is_positive, None]
    explained = projections[is_positive] / sigma
    smallest = SMALLEST_RESIDUAL * target_norms
    outside = target_norms - explained.sum(axis=0)
    # As many directions as images hold every target. Directions that explain more than the target do so by rounding; with a
    # negative r₀, R would have a zero, and the evidence a pole there.
    nothing = 0 * smallest if len(sigma) == num_samples else smallest
    overshoot = np.maximum(-outside, 0.0)
    outside = np.where(outside <= smallest, nothing, outside)
    return _Regression(sigma, explained, outside, overshoot, target_norms, num_samples)


def _log_evidence(log_determinant: np.ndarray, unexplained: np.ndarray, num_samples: int) -> np.ndarray:
    """−½ Σ ln(1 + σ/τ) − n/2 ln(2π R/n) − n/2, divided by n."""
    return -log_determinant / (2 * num_samples) - (np.log(2 * math.pi * unexplained / num_samples) + 1) / 2


def _grid(sigma: np.ndarray, num_samples: int) -> np.ndarray:
    """Ln τ from where even the smallest eigenvalue is not shrunk to where all are.

    At a maximum τ = γR/(n‖m‖²) with γ ≥ ½ there, R at least the smallest residual and ‖m‖² at most ‖t‖²/σ_min.
    """
    low = math.log(SMALLEST_RESIDUAL * float(sigma.min()) / (2 * num_samples))
    high = math.log(_BEYOND_THE_LARGEST * float(sigma.max()))
    return np.linspace(low, high, math.ceil((high - low) / math.log(10) * _STEPS_A_DECADE) + 1)


def _on_grid(regression: _Regression, grid: np.ndarray) -> np.ndarray:
    """The evidence (points, targets) at all points of the grid: one matrix product."""
    ratio = np.exp(grid)[:, None]
    sigma = regression.spectrum[:, 0]
    unexplained = regression.unexplained((ratio / (sigma + ratio)) @ regression.explained)
    log_determinant = np.log1p(sigma / ratio).sum(axis=1, keepdims=True)
    return _log_evidence(log_determinant, unexplained, regression.num_samples)


def _at(regression: _Regression, log_ratio: np.ndarray) -> np.ndarray:
    """The evidence of each target at its own ln τ."""
    log_determinant = np.log1p(regression.spectrum / np.exp(log_ratio)).sum(axis=0)
    return _log_evidence(log_determinant, _unexplained_at(regression, log_ratio), regression.num_samples)


def _unexplained_at(regression: _Regression, log_ratio: np.ndarray) -> np.ndarray:
    """R of each target at its own ln τ."""
    ratio = np.exp(log_ratio)
    return regression.unexplained((regression.explained * (ratio / (regression.spectrum + ratio))).sum(axis=0))


def _refine(
    regression: _Regression, low: np.ndarray, middle: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ln τ of the maximum between ``low`` and ``high``, by Newton's method, halving where it would leave them."""
    low, middle, high = low.copy(), middle.copy(), high.copy()
    num_steps = np.zeros(len(middle), dtype=np.int64)
    active = np.ones(len(middle), dtype=bool)
    for _ in range(_MAX_STEPS):
        column = np.flatnonzero(active)
        if not column.size:
            break
        now = middle[column]
        slope, curvature = _derivatives(regression.of(column), now)
        low[column] = np.where(slope > 0, now, low[column])
        high[column] = np.where(slope > 0, high[column], now)
        newton = now - slope / np.where(curvature < 0, curvature, -np.inf)
        is_inside = (curvature < 0) & (newton >= low[column]) & (newton <= high[column])
        middle[column] = np.where(is_inside, newton, (low[column] + high[column]) / 2)
        num_steps[column] += 1
        active[column] = np.abs(middle[column] - now) > _TOLERANCE
    return middle, num_steps, ~active


def _derivatives(regression: _Regression, log_ratio: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative of n · log evidence by ln τ."""
    ratio = np.exp(log_ratio)
    total = regression.spectrum + ratio
    fitted, shrunk = regression.spectrum / total, ratio / total  # they add up to 1
    both = fitted * shrunk
    unexplained = regression.unexplained((regression.explained * shrunk).sum(axis=0))
    of_weights = regression.explained * both
    first = of_weights.sum(axis=0) / unexplained  # the derivative of ln R
    second = (of_weights * (fitted - shrunk)).sum(axis=0) / unexplained - first**2
    num_samples = regression.num_samples
    return (fitted.sum(axis=0) - num_samples * first) / 2, -(both.sum(axis=0) + num_samples * second) / 2
