"""A Gaussian mixture by expectation–maximisation, made for many components with few rows each.

The model is that of scikit-learn's ``GaussianMixture`` (which N-LEEP's published code uses): weights π_k, means μ_k,
covariances Σ_k + 1e-6 I, maximum likelihood. Two things make it fast:

* **Low rank.** A component that owns m rows of dimension q > 2m has Σ_k = AᵀA + εI with A of m rows, so its distances
  need m products instead of q²: ‖·‖²_{Σ⁻¹} = ‖x−μ‖²/ε − ‖W(x−μ)‖².
* **Pruning.** Distances are sums of squares over whitened coordinates. Summing them block by block, a row is dropped
  from a component as soon as its density there is e⁻⁴⁵ of the density that it has elsewhere, which no double sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float64
from scipy.linalg import cholesky, solve_triangular

CovarianceKind = Literal["full", "diag"]
Points = Float64[np.ndarray, "num_samples num_dimensions"]
Posterior = Float64[np.ndarray, "num_samples num_components"]
Responsibilities = Float64[np.ndarray, "num_components num_samples"]

_RIDGE = 1e-6
"""Added to every variance; scikit-learn's ``reg_covar``."""
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-3
"""Change of the mean log likelihood at which the fit has converged; scikit-learn's ``tol``."""
_NEGLIGIBLE = 45.0
"""Nats below a row's density elsewhere: e⁻⁴⁵ = 3e-20, below the resolution of a double even for 1000 components."""
_BLOCK = 32
"""Whitened coordinates added between two prunings."""


class Mixture(NamedTuple):
    """A fitted mixture, as its posterior on the rows that it was fitted to.

    Attributes:
        posterior: p(k | x_i); rows sum to 1.
        log_likelihood: Mean over the rows.
        num_iterations: EM steps taken.
        converged: Whether the likelihood settled within 100 steps.
    """

    posterior: Posterior
    log_likelihood: float
    num_iterations: int
    converged: bool


def fit_mixture(points: Points, start: Posterior, *, covariance: CovarianceKind) -> Mixture:
    """Alternate E and M steps from the responsibilities ``start`` (one-hot clusters, or those of a near-by fit).

    Args:
        points: One row a sample.
        start: Initial responsibilities.
        covariance: One matrix (``full``) or one vector of variances (``diag``) a component.
    """
    responsibilities = np.ascontiguousarray(start.T)
    log_likelihood = -np.inf
    converged = False
    iteration = 0
    while iteration < _MAX_ITERATIONS and not converged:
        iteration += 1
        previous = log_likelihood
        responsibilities, log_likelihood = _step(points, responsibilities, covariance)
        converged = abs(log_likelihood - previous) < _TOLERANCE
    # scikit-learn reports the posterior one step after the one that met the tolerance.
    responsibilities, log_likelihood = _step(points, responsibilities, covariance)
    return Mixture(np.ascontiguousarray(responsibilities.T), log_likelihood, iteration, converged)


def _step(points: Points, responsibilities: Responsibilities, covariance: CovarianceKind) -> tuple[np.ndarray, float]:
    """One M step and one E step: new responsibilities and the mean log likelihood that they belong to."""
    components = [_maximise(points, row, covariance) for row in responsibilities]
    return _expect(points, components, responsibilities.argmax(axis=0))


class _Component(Protocol):
    """One weighted Gaussian."""

    def log_joint(self, points: Points, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows whose ln π_k p(x | k) may reach ``floor``, and its values there."""
        ...


@dataclass(frozen=True)
class _FullComponent:
    """Σ = LLᵀ; ``whitening`` is L⁻ᵀ, so block j of (x−μ)L⁻ᵀ needs the first j blocks of x only."""

    log_scale: float
    mean: np.ndarray
    whitening: np.ndarray

    def log_joint(self, points: Points, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(len(points))
        distances = np.zeros(len(points))
        num_dimensions = len(self.mean)
        for start in range(0, num_dimensions, _BLOCK):
            stop = min(start + _BLOCK, num_dimensions)
            known = points[:, :stop] if len(rows) == len(points) else points[rows, :stop]
            whitening = self.whitening[:stop, start:stop]
            whitened = known @ whitening - self.mean[:stop] @ whitening
            distances += np.einsum("ij,ij->i", whitened, whitened)
            alive = self.log_scale - distances / 2 >= floor[rows]
            if not alive.all():
                rows, distances = rows[alive], distances[alive]
        return rows, self.log_scale - distances / 2


@dataclass(frozen=True)
class _LowRankComponent:
    """Σ = AᵀA + εI; ``directions`` is W with WᵀW = ε⁻¹I − Σ⁻¹, and ``largest`` the largest eigenvalue of Σ."""

    log_scale: float
    mean: np.ndarray
    directions: np.ndarray
    largest: float

    def log_joint(self, points: Points, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        offsets = points - self.mean
        squared = np.einsum("ij,ij->i", offsets, offsets)
        rows = np.flatnonzero(self.log_scale - squared / (2 * self.largest) >= floor)
        explained = offsets[rows] @ self.directions.T
        distances = squared[rows] / _RIDGE - np.einsum("ij,ij->i", explained, explained)
        return rows, self.log_scale - np.maximum(distances, 0.0) / 2


@dataclass(frozen=True)
class _DiagonalComponent:
    """Σ = diag(variances)."""

    log_scale: float
    mean: np.ndarray
    variances: np.ndarray

    def log_joint(self, points: Points, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        del floor  # so cheap that nothing is worth leaving out
        distances = np.square(points - self.mean) @ (1 / self.variances)
        return np.arange(len(points)), self.log_scale - distances / 2


def _maximise(points: Points, responsibility: np.ndarray, covariance: CovarianceKind) -> _Component:
    """The component that maximises the likelihood of the rows that it is responsible for."""
    num_samples, num_dimensions = points.shape
    mass = responsibility.sum() + 10 * np.finfo(np.float64).eps
    rows = np.flatnonzero(responsibility > np.finfo(np.float64).eps * mass)
    shares = responsibility[rows] / mass
    mean = shares @ points[rows]
    scaled = np.sqrt(shares)[:, None] * (points[rows] - mean)  # A, with AᵀA the covariance
    log_scale = np.log(mass / num_samples) - num_dimensions / 2 * np.log(2 * np.pi)
    if covariance == "diag":
        variances = np.square(scaled).sum(axis=0) + _RIDGE
        return _DiagonalComponent(log_scale - np.log(variances).sum() / 2, mean, variances)
    if 2 * len(rows) < num_dimensions:
        return _low_rank(log_scale, mean, scaled)
    factor = cholesky(scaled.T @ scaled + _RIDGE * np.eye(num_dimensions), lower=True, check_finite=False)
    whitening = solve_triangular(factor, np.eye(num_dimensions), lower=True, check_finite=False).T
    return _FullComponent(log_scale - np.log(np.diagonal(factor)).sum(), mean, whitening)


def _low_rank(log_scale: float, mean: np.ndarray, scaled: np.ndarray) -> _LowRankComponent:
    _, singular_values, directions = np.linalg.svd(scaled, full_matrices=False)
    variances = np.square(singular_values)
    shrinkage = np.sqrt(variances / (_RIDGE * (variances + _RIDGE)))
    num_dimensions = len(mean)
    log_determinant = np.log1p(variances / _RIDGE).sum() + num_dimensions * np.log(_RIDGE)
    largest = variances.max(initial=0.0) + _RIDGE
    return _LowRankComponent(log_scale - log_determinant / 2, mean, shrinkage[:, None] * directions, largest)


def _expect(points: Points, components: list[_Component], likely: np.ndarray) -> tuple[np.ndarray, float]:
    """Responsibilities and mean log likelihood; ``likely`` names a component of each row where its density is high."""
    num_samples = len(points)
    log_joint = np.full((len(components), num_samples), -np.inf)
    floor = np.empty(num_samples)
    for index, component in enumerate(components):
        own = np.flatnonzero(likely == index)
        floor[own] = component.log_joint(points[own], np.full(len(own), -np.inf))[1]
    floor -= _NEGLIGIBLE
    for index, component in enumerate(components):
        rows, values = component.log_joint(points, floor)
        log_joint[index, rows] = values
    largest = log_joint.max(axis=0)
    joint = np.exp(log_joint - largest)
    total = joint.sum(axis=0)
    return joint / total, float(np.mean(largest + np.log(total)))
