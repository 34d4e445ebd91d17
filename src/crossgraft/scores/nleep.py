"""N-LEEP: LEEP with the source classes replaced by the clusters that the features form."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float64
from scipy.linalg import LinAlgError, cholesky, get_lapack_funcs

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores._expected_prediction import empirical_prediction
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.types import Features, Labels

# A Gaussian mixture by expectation–maximisation, made for many components with few rows each.
#
# The model is that of scikit-learn's ``GaussianMixture`` (which N-LEEP's published code uses): weights π_k, means μ_k,
# covariances Σ_k + 1e-6 I, maximum likelihood. Two things make it fast:
#
# * **Low rank.** A component that owns m rows of dimension q > 2m has Σ_k = AᵀA + εI with A of m rows, so its distances
#   need m products instead of q²: ‖·‖²_{Σ⁻¹} = ‖x−μ‖²/ε − ‖W(x−μ)‖².
# * **Screening.** A few whitened coordinates bound a distance from below, and one matrix product gives them for many
#   components. A row is left out of a component where the bound puts its density e⁻⁴⁵ below the density that the row has
#   elsewhere, which no double sees.

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
            return _fitted_mixture(responsibilities, log_likelihood, iteration, converged=True)
        converged = abs(log_likelihood - previous) < _TOLERANCE
    # scikit-learn reports the posterior one step after the one that met the tolerance.
    responsibilities, log_likelihood = _step(points, responsibilities, covariance)
    return _fitted_mixture(responsibilities, log_likelihood, iteration, converged=converged)


def _fitted_mixture(responsibilities: np.ndarray, log_likelihood: float, num_iterations: int, *, converged: bool) -> Mixture:
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


@score(
    title="N-LEEP",
    reference="Li, Jia, Sang, Zhu, Green, Wang and Gong, Ranking Neural Checkpoints, CVPR 2021, section 3.2",
    is_seeded=True,
    num_redraws=4,
    invariances=("padding", "rotation", "shift"),
    warns_of=("constant features", "tiny features"),
    cost="principal components and an EM fit with K = ratio·C components; the most expensive static score",
)
def nleep(
    features: Features,
    labels: Labels,
    *,
    log: bool = False,
    ratio: int = 5,
    covariance: CovarianceKind = "full",
    variance_kept: float = 0.8,
    seed: int = 0,
    statistics: Statistics = SHARED,
) -> ScoreValue:
    """mean_i Σ_k r_ik p(y_i | k), with r the posterior of a Gaussian mixture on the leading principal components.

    p(y | k) = Σ_{i: y_i=y} r_ik / Σ_i r_ik; a component without rows has p(y | k) = p(y). The mixture starts from
    k-means. With rows left out (the jackknife) it starts from the responsibilities of the full fit instead, so that the
    spread over images is not mixed with that over starting points, which a ranking estimates from four more fits.

    Args:
        features: (n, d).
        labels: (n,).
        log: Mean of logarithms, as in the paper. The default is the mean probability, which the published code
            computes and published tables hold.
        ratio: Mixture components for each class; K = min(ratio·C, n).
        covariance: ``full`` or ``diag`` covariances of the components.
        variance_kept: Share of the variance that the principal components hold, in (0, 1).
        seed: Random seed of the k-means start.
        statistics: Shared statistics of the same features and labels.

    Returns:
        In (0, 1], or (−∞, 0] with ``log``; higher is better. ``parts`` says the covariance kind and the size of the fit.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: A setting is out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> round(nleep(features=X, labels=y), 3)
        1.0
    """
    if ratio < 1:
        raise UsageError(f"`ratio` must be at least 1 component for each class, got {ratio}.")
    if not 0 < variance_kept < 1:
        raise UsageError(f"`variance_kept` must lie between 0 and 1, got {variance_kept}.")
    num_components = min(ratio * statistics.num_classes, statistics.num_samples)
    mixture = _mixture(statistics.label_free, num_components, covariance, variance_kept, seed)
    notes = list(statistics.warnings)
    if statistics.label_free.is_constant:
        notes.append("All features are constant, so the mixture has nothing to separate.")
    elif statistics.label_free.scatter_spectrum.values[-1] / statistics.num_samples < RIDGE:
        notes.append("The features vary less than the ridge of the mixture; multiply them by a constant first.")
    if not mixture.converged:
        notes.append(f"The mixture did not converge in {mixture.num_iterations} steps.")
    parts = {
        "components": num_components,
        "full_covariance": covariance == "full",
        "iterations": mixture.num_iterations,
        "log_likelihood": mixture.log_likelihood,
    }
    value = empirical_prediction(mixture.posterior, statistics.targets, log=log)
    return ScoreValue(value, parts=parts, warnings=notes)


def _mixture(
    statistics: FeatureStatistics, num_components: int, covariance: CovarianceKind, variance_kept: float, seed: int
) -> Mixture:
    """The fitted mixture of these features, remembered: label permutations do not fit it again."""

    def fit() -> Mixture:
        points = statistics.principal_scores(variance_kept)
        if points.shape[1] == 0:
            even = np.full((statistics.num_samples, num_components), 1 / num_components)
            return Mixture(even, 0.0, 0, converged=True)
        if statistics.origin is None:
            start = _clusters(points, num_components, seed)
        else:
            parent, kept, _ = statistics.origin
            start = _mixture(parent, num_components, covariance, variance_kept, seed).posterior[kept]
        return fit_mixture(points, start, covariance=covariance)

    return statistics.remember(("mixture", num_components, covariance, variance_kept, seed), fit)


def _clusters(points: np.ndarray, num_clusters: int, seed: int) -> np.ndarray:
    """One-hot k-means clusters, at most as many as there are distinct rows."""
    from sklearn.cluster import KMeans  # a quarter of a second, which `rank` without N-LEEP does not wait for
    from sklearn.exceptions import ConvergenceWarning

    points = points.astype(np.float32)
    num_clusters = min(num_clusters, len(np.unique(points, axis=0)))
    kmeans = KMeans(num_clusters, n_init=1, random_state=seeding.derive_seed(seed, "k-means"))  # pyright: ignore[reportArgumentType] - the stub knows "auto" only
    with warnings.catch_warnings():  # rows that differ by rounding only may share a cluster; EM does not mind
        warnings.simplefilter("ignore", ConvergenceWarning)
        assigned = kmeans.fit_predict(points)
    return np.eye(num_clusters)[assigned]
