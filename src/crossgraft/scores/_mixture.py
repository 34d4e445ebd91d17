"""A Gaussian mixture by expectation–maximisation, made for many components with few rows each.

The model is that of scikit-learn's ``GaussianMixture`` (which N-LEEP's published code uses): weights π_k, means μ_k,
covariances Σ_k + 1e-6 I, maximum likelihood. Two things make it fast:

* **Low rank.** A component that owns m rows of dimension q > 2m has Σ_k = AᵀA + εI with A of m rows, so its distances
  need m products instead of q²: ‖·‖²_{Σ⁻¹} = ‖x−μ‖²/ε − ‖W(x−μ)‖².
* **Screening.** A few whitened coordinates bound a distance from below, and one matrix product gives them for many
  components. A row is left out of a component where the bound puts its density e⁻⁴⁵ below the density that the row has
  elsewhere, which no double sees.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.linalg import LinAlgError, cholesky, get_lapack_funcs

CovarianceKind = Literal["full", "diag"]
Points = Float64[np.ndarray, "num_samples num_dimensions"]
Posterior = Float64[np.ndarray, "num_samples num_components"]
Responsibilities = Float64[np.ndarray, "num_components num_samples"]

RIDGE = 1e-6
"""Added to every variance; scikit-learn's ``reg_covar``."""
_MAX_ITERATIONS = 100
_TOLERANCE = 1e-3
"""Change of the mean log likelihood at which the fit has converged; scikit-learn's ``tol``."""
_NEGLIGIBLE = 45.0
"""Nats below a row's density elsewhere: e⁻⁴⁵ = 3e-20, below the resolution of a double even for 1000 components."""
_SAME_RESPONSIBILITY = 1e-9
"""Change of all responsibilities below which EM stands still."""
_SCREEN_ROWS = 8
"""Whitened coordinates that bound the distances of a full component."""
_SECOND_SCREEN_ROWS = 48
"""Whitened coordinates that bound them again, for the rows that are left."""
_COMPONENTS_A_PRODUCT = 64
"""Means that are multiplied with the points at a time."""


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
        points: One row per sample.
        start: Initial responsibilities.
        covariance: One matrix (``full``) or one vector of variances (``diag``) a component.
    """
    responsibilities = np.ascontiguousarray(start.T)
    log_likelihood = -np.inf
    converged = False
    iteration = 0
    while iteration < _MAX_ITERATIONS and not converged:
        iteration += 1
        before, previous = responsibilities, log_likelihood
        responsibilities, log_likelihood = _step(points, before, covariance)
        if np.abs(responsibilities - before).max() < _SAME_RESPONSIBILITY:  # every further step is this one again
            return _mixture(responsibilities, log_likelihood, iteration, converged=True)
        converged = abs(log_likelihood - previous) < _TOLERANCE
    # scikit-learn reports the posterior one step after the one that met the tolerance.
    responsibilities, log_likelihood = _step(points, responsibilities, covariance)
    return _mixture(responsibilities, log_likelihood, iteration, converged=converged)


def _mixture(responsibilities: np.ndarray, log_likelihood: float, num_iterations: int, *, converged: bool) -> Mixture:
    return Mixture(np.ascontiguousarray(responsibilities.T), log_likelihood, num_iterations, converged)


def _step(points: Points, responsibilities: Responsibilities, covariance: CovarianceKind) -> tuple[np.ndarray, float]:
    """One M step and one E step: new responsibilities and the mean log likelihood that they belong to."""
    components = [_maximise(points, row, covariance) for row in responsibilities]
    return _expect(points, components, responsibilities.argmax(axis=0))


@dataclass(frozen=True)
class _Component(ABC):
    """One weighted Gaussian, and a cheap lower bound of its squared distances.

    The bound is ``near``·‖x−μ‖² + ``sign``·‖S(x−μ)‖², with few rows in S, so that one product bounds many components.
    """

    log_scale: float
    mean: np.ndarray
    near: float
    sign: float
    screen: np.ndarray

    @abstractmethod
    def distances(self, points: Points) -> np.ndarray:
        """(x−μ)ᵀ Σ⁻¹ (x−μ) of each row."""

    def log_joint(self, points: Points, floor: np.ndarray) -> np.ndarray:
        """Ln π_k p(x | k) of each row; it may be −∞ where it lies below ``floor``."""
        del floor
        return self.log_scale - self.distances(points) / 2


@dataclass(frozen=True)
class _FullComponent(_Component):
    """Σ = LLᵀ; ``whitening`` is L⁻¹.

    The screen is its last rows: the coordinates whose variance given all others is the smallest, which tell foreign
    rows apart at once.
    """

    whitening: np.ndarray

    def distances(self, points: Points) -> np.ndarray:
        return self._partial_distances(points, self.whitening)

    def _partial_distances(self, points: Points, whitening: np.ndarray) -> np.ndarray:
        whitened = points @ whitening.T
        whitened -= whitening @ self.mean  # in place: fresh memory costs as much as the product
        return np.einsum("ij,ij->i", whitened, whitened)

    def log_joint(self, points: Points, floor: np.ndarray) -> np.ndarray:
        if len(self.mean) <= 2 * _SECOND_SCREEN_ROWS:  # a second bound would cost as much as the distance
            return super().log_joint(points, floor)
        bound = self.log_scale - self._partial_distances(points, self.whitening[-_SECOND_SCREEN_ROWS:]) / 2
        rows = np.flatnonzero(bound >= floor)
        values = np.full(len(points), -np.inf)
        values[rows] = self.log_scale - self.distances(points[rows]) / 2
        return values


@dataclass(frozen=True)
class _LowRankComponent(_Component):
    """Σ = AᵀA + εI; the screen is W with WᵀW = ε⁻¹I − Σ⁻¹, so the bound is the distance itself."""

    def distances(self, points: Points) -> np.ndarray:
        offsets = points - self.mean
        explained = offsets @ self.screen.T
        distances = np.einsum("ij,ij->i", offsets, offsets) / RIDGE - np.einsum("ij,ij->i", explained, explained)
        return np.maximum(distances, 0.0)


@dataclass(frozen=True)
class _DiagonalComponent(_Component):
    """Σ = diag(variances); the bound uses the largest of them."""

    variances: np.ndarray

    def distances(self, points: Points) -> np.ndarray:
        return np.square(points - self.mean) @ (1 / self.variances)


def _maximise(points: Points, responsibility: np.ndarray, covariance: CovarianceKind) -> _Component:
    """The component that maximises the likelihood of the rows that it is responsible for."""
    num_samples, num_dimensions = points.shape
    mass = responsibility.sum() + 10 * np.finfo(np.float64).eps
    rows = np.flatnonzero(responsibility > np.finfo(np.float64).eps * mass)
    shares = responsibility[rows] / mass
    mean = shares @ points[rows]
    scaled = np.sqrt(shares)[:, None] * (points[rows] - mean)  # A, with AᵀA the covariance
    log_scale = float(np.log(mass / num_samples) - num_dimensions / 2 * np.log(2 * np.pi))
    if covariance == "diag":
        return _diagonal(log_scale, mean, scaled)
    if 2 * len(rows) < num_dimensions:
        return _low_rank(log_scale, mean, scaled)
    return _full(log_scale, mean, scaled)


def _diagonal(log_scale: float, mean: np.ndarray, scaled: np.ndarray) -> _Component:
    variances = np.square(scaled).sum(axis=0) + RIDGE
    no_screen = np.zeros((0, len(mean)))
    log_scale -= float(np.log(variances).sum()) / 2
    return _DiagonalComponent(log_scale, mean, 1 / variances.max(), 1.0, no_screen, variances)


def _low_rank(log_scale: float, mean: np.ndarray, scaled: np.ndarray) -> _Component:
    _, singular_values, directions = np.linalg.svd(scaled, full_matrices=False)
    variances = np.square(singular_values)
    shrinkage = np.sqrt(variances / (RIDGE * (variances + RIDGE)))
    log_scale -= float(np.log1p(variances / RIDGE).sum() + len(mean) * np.log(RIDGE)) / 2
    return _LowRankComponent(log_scale, mean, 1 / RIDGE, -1.0, shrinkage[:, None] * directions)


def _full(log_scale: float, mean: np.ndarray, scaled: np.ndarray) -> _Component:
    matrix = scaled.T @ scaled
    matrix.flat[:: len(mean) + 1] += RIDGE
    try:
        factor = cholesky(matrix.T, lower=True, overwrite_a=False, check_finite=False)
    except LinAlgError:
        whitening, log_determinant = _whiten_by_eigenvectors(matrix)
    else:
        (invert_triangle,) = get_lapack_funcs(("trtri",), dtype=np.float64)
        whitening, _ = invert_triangle(factor, lower=1)
        log_determinant = 2 * float(np.log(np.diagonal(factor)).sum())
    # Screening pays where it saves most of a long distance.
    screen = whitening[-_SCREEN_ROWS:] if len(mean) > 4 * _SCREEN_ROWS else whitening[:0]
    return _FullComponent(log_scale - log_determinant / 2, mean, 0.0, 1.0, screen, whitening)


def _whiten_by_eigenvectors(matrix: np.ndarray) -> tuple[np.ndarray, float]:
    """W with WᵀW = Σ⁻¹, smallest variances last, and ln det Σ, where features are so large that rounding exceeds the ridge.

    Variances that rounding swallows are set to the smallest that it does not.
    """
    variances, directions = np.linalg.eigh(matrix)
    resolution = len(variances) * np.finfo(np.float64).eps * variances[-1]
    variances = np.maximum(variances, max(RIDGE, resolution))
    whitening = (directions / np.sqrt(variances)).T[::-1]
    return np.ascontiguousarray(whitening), float(np.log(variances).sum())


def _expect(points: Points, components: Sequence[_Component], likely: np.ndarray) -> tuple[np.ndarray, float]:
    """Responsibilities and mean log likelihood; ``likely`` names a component of each row where its density is high."""
    num_samples = len(points)
    own_density = np.empty(num_samples)
    for index, component in enumerate(components):
        own = np.flatnonzero(likely == index)
        own_density[own] = component.log_scale - component.distances(points[own]) / 2
    floor = own_density - _NEGLIGIBLE
    log_joint = np.full((len(components), num_samples), -np.inf)
    for index, rows in enumerate(_candidates(points, components, floor)):
        log_joint[index, rows] = components[index].log_joint(points[rows], floor[rows])
    # Bounds of huge features are rough; no row may lose the component that it was compared with.
    log_joint[likely, np.arange(num_samples)] = own_density
    largest = log_joint.max(axis=0)
    log_joint -= largest
    joint = np.exp(log_joint, out=log_joint)
    total = joint.sum(axis=0)
    joint /= total
    return joint, float(np.mean(largest + np.log(total)))


def _candidates(points: Points, components: Sequence[_Component], floor: np.ndarray) -> Iterator[np.ndarray]:
    """For each component, the rows whose bounded distance lets them reach ``floor``; its own rows among them."""
    squared_norms = np.einsum("ij,ij->i", points, points)
    for start in range(0, len(components), _COMPONENTS_A_PRODUCT):
        some = components[start : start + _COMPONENTS_A_PRODUCT]
        screened = np.concatenate([component.screen for component in some]) @ points.T
        products = np.array([component.mean for component in some]) @ points.T
        stop = 0
        for component, product in zip(some, products, strict=True):
            first, stop = stop, stop + len(component.screen)
            coordinates = screened[first:stop]
            coordinates -= (component.screen @ component.mean)[:, None]
            bound = component.sign * np.square(coordinates, out=coordinates).sum(axis=0)
            if component.near > 0:
                bound += component.near * (squared_norms - 2 * product + component.mean @ component.mean)
            yield np.flatnonzero(component.log_scale - bound / 2 >= floor)
