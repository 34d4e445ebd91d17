"""LogME's fixed point as its authors released it; only for comparing with published tables.

Of three constants none follows from the evidence: α and β start at 1, the iteration stops after 11 steps, and 1e-5 is added to
‖m‖² and ‖t − Xm‖². ‖m‖² has the unit of 1/σ, so the result depends on the scale of the features.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int

_EPSILON = 1e-5
"""Keeps α and β finite when a target is fitted perfectly."""
_MAX_ITERATIONS = 11
_TOLERANCE = 1e-3
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
        active[column] = np.abs(new_ratio - ratio[column]) > _TOLERANCE * ratio[column]
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
