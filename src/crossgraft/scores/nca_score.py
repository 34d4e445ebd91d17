"""NCA score: how sure a nearest-neighbour classifier is after the features were bent towards the labels."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float32, Float64

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores._score import ScoreValue, score
from crossgraft.types import ClassIndices, Features, Labels

# Neighbourhood components analysis (Goldberger et al., NeurIPS 2004), with float32 matrix products.
#
# p_ij = exp(−‖A x_i − A x_j‖²) / Σ_{k≠i} exp(−‖A x_i − A x_k‖²), p_ii = 0; p_i = Σ_{j of the class of i} p_ij. The objective
# is Σ_i p_i. Its gradient needs W_ij = p_ij (1[same class] − p_i) only: with the embedding E = X Aᵀ,
#
#     ∂/∂A = 2 ((W + Wᵀ) E − diag(column sums of W) E)ᵀ X     (sums of the rows of W are 0).
#
# Objective, start and stop rule are those of scikit-learn's ``NeighborhoodComponentsAnalysis``.

_MAX_ITERATIONS = 50
_TOLERANCE = 1e-5
_FARTHEST = np.float32(-40)
"""Exponent below which a neighbour does not count: n · exp(−40) is far below the resolution of float32."""


class NcaFit(NamedTuple):
    """What ``fit_nca`` found.

    Attributes:
        embedded: A x_i, (n, components).
        transformation: A, (components, directions).
        objective: Mean of p_i, the expected accuracy of the stochastic classifier, leave-one-out.
        num_evaluations: Number of evaluations of objective and gradient.
    """

    embedded: Float32[np.ndarray, "num_samples num_components"]
    transformation: Float32[np.ndarray, "num_components num_directions"]
    objective: float
    num_evaluations: int


def fit_nca(points: Float64[np.ndarray, "num_samples num_directions"], labels: ClassIndices, *, num_components: int) -> NcaFit:
    """Fit A from the discriminant axes if there are enough classes, else from the first coordinates.

    Args:
        points: Principal components, so that the first coordinates are the start that scikit-learn calls ``pca``.
        labels: Class indices (n,), every class present.
        num_components: Number of components, at most the number of directions.

    Cost about 55 times O(n²·components).
    """
    order = np.argsort(labels, kind="stable")  # classes in one piece, so that "same class" is a slice
    rows = points[order].astype(np.float32)
    bounds = np.concatenate([[0], np.cumsum(np.bincount(labels))])
    start = _start(points, labels, num_components)
    objective = _Objective(rows, bounds, start.shape)
    fit = scipy.optimize.minimize(
        objective, start.ravel(), jac=True, method="L-BFGS-B", tol=_TOLERANCE, options={"maxiter": _MAX_ITERATIONS}
    )
    transformation = fit.x.reshape(start.shape).astype(np.float32)
    return NcaFit(points.astype(np.float32) @ transformation.T, transformation, -float(fit.fun) / len(points), int(fit.nfev))


def _start(points: np.ndarray, labels: np.ndarray, num_components: int) -> np.ndarray:
    num_samples, num_directions = points.shape
    num_classes = int(labels.max()) + 1
    if num_components <= min(num_directions, num_classes - 1) and num_classes < num_samples:
        from sklearn.discriminant_analysis import LinearDiscriminantAnalysis  # imported late, as in N-LEEP

        return LinearDiscriminantAnalysis(n_components=num_components).fit(points, labels).scalings_.T[:num_components]
    return np.eye(num_components, num_directions)


class _Objective:
    """−Σ p_i and its gradient, for rows sorted by class; buffers are reused between calls."""

    def __init__(self, rows: Float32[np.ndarray, "n q"], bounds: np.ndarray, shape: tuple[int, ...]) -> None:
        self._rows = rows
        self._classes = [slice(low, high) for low, high in pairwise(bounds)]
        self._shape = shape
        self._buffer = np.empty((len(rows), len(rows)), dtype=np.float32)

    def __call__(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        transformation = flat.reshape(self._shape).astype(np.float32)
        embedded = self._rows @ transformation.T
        probabilities = self._probabilities(embedded)
        own = np.empty(len(embedded), dtype=np.float32)
        for members in self._classes:
            own[members] = probabilities[members, members].sum(axis=1)
        weights = probabilities  # becomes −W in place: p_ij p_i, less p_ij within the class
        for members in self._classes:
            block = weights[members, members]
            inside = block * (own[members, None] - 1)
            weights[members] *= own[members, None]
            weights[members, members] = inside
        pulled = weights @ embedded + weights.T @ embedded - weights.sum(axis=0)[:, None] * embedded
        gradient = 2 * (pulled.T @ self._rows)
        return -float(own.sum(dtype=np.float64)), gradient.astype(np.float64).ravel()

    def _probabilities(self, embedded: np.ndarray) -> np.ndarray:
        """p_ij, (n, n), in the buffer."""
        norms = np.einsum("ij,ij->i", embedded, embedded)
        closeness = np.matmul(embedded, embedded.T, out=self._buffer)
        closeness *= 2
        closeness -= norms  # −‖·‖² up to a constant a row
        np.fill_diagonal(closeness, -np.inf)
        closeness -= closeness.max(axis=1, keepdims=True)
        np.maximum(closeness, _FARTHEST, out=closeness)  # smaller numbers would be subnormal, and ten times as slow
        np.exp(closeness, out=closeness)
        np.fill_diagonal(closeness, 0)
        closeness /= closeness.sum(axis=1, keepdims=True)
        return closeness


NUM_COMPONENTS = 50
_NUM_DIRECTIONS = 256
"""Principal components that the transformation may look at."""
_CONSTANT = 1e-10
"""Share of the largest variance below which a principal direction is empty."""


@score(
    title="NCA score",
    reference="Juodelyte, thesis on cross-domain transfer in medical imaging, chapter 6, eq. 6.2 (S_LP); Goldberger, Roweis, "
    "Hinton and Salakhutdinov, Neighbourhood Components Analysis, NeurIPS 2004",
    is_seeded=True,
    invariances=("padding", "shift"),
    warns_of=("constant features",),
    cost="about 55 gradients of O(m²·50), m = min(n, 2000): a few seconds",
)
def nca_score(
    features: Features, labels: Labels, *, k: int = 5, loo: bool = False, max_images: int = 2000, seed: int = 0
) -> ScoreValue:
    """Mean share of the k nearest neighbours that are of the image's own class, after NCA: (1/n) Σ_i p(y_i | A x_i).

    Neighbourhood components analysis finds the linear map A to min(50, d) dimensions that maximises Σ_i p_i, the expected
    hits of a stochastic nearest-neighbour classifier, in at most 50 steps of L-BFGS. As in the published code, the
    classifier is asked about the very images that it was fitted on, and each of them is its own nearest neighbour.

    Args:
        features: (n, d), as they are. NCA sees their first min(n − 1, 256) principal components: the same up to a
            rotation where these hold all variance.
        labels: (n,).
        k: Neighbours, the image itself among them.
        loo: Leave the image itself out; then no value is a gift, and random labels score p_c.
        max_images: Larger sets are represented by so many images, with the classes in proportion.
        seed: Random seed of this choice.

    Returns:
        In [1/k, 1], a multiple of 1/(n·k); in [0, 1] with ``loo``. The equation writes a sum, the published code a mean.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: ``k`` or ``max_images`` is out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> nca_score(features=X, labels=y)
        1.0
    """
    if k < 1 or max_images < 2:
        raise UsageError(f"`k` must be at least 1 and `max_images` at least 2, got {k} and {max_images}.")
    warnings: tuple[str, ...] = ()
    num_samples = len(labels)
    if num_samples > max_images:
        chosen = in_proportion(labels, max_images, seeding.generator(seed, "NCA images"))
        features, labels = features[chosen], np.unique(labels[chosen], return_inverse=True)[1]
        warnings = (f"Computed on {len(chosen)} of {num_samples} images, drawn with the classes in proportion.",)
    points, kept = principal_components(features)
    if not points.shape[1]:
        return _without_neighbours(labels, k, loo=loo, warnings=warnings)
    fit = fit_nca(points, labels, num_components=min(NUM_COMPONENTS, points.shape[1]))
    hits = _share_of_neighbours(fit.embedded, labels, k, loo=loo)
    parts = {"images": len(points), "variance_kept": kept, "evaluations": fit.num_evaluations, "objective": fit.objective}
    return ScoreValue(float(hits.mean()), parts=parts, warnings=warnings)


def _without_neighbours(labels: ClassIndices, k: int, *, loo: bool, warnings: tuple[str, ...]) -> ScoreValue:
    """All features are constant: every other image is as near as any, and only the image itself is sure."""
    counts = np.bincount(labels)
    others = float((counts * (counts - 1)).sum() / len(labels) / (len(labels) - 1))
    num_neighbours = min(k, len(labels))
    value = others if loo else (1 + (num_neighbours - 1) * others) / num_neighbours
    reason = "All features are constant, so no image is nearer than another."
    return ScoreValue(value, parts={"images": len(labels)}, warnings=(*warnings, reason))


def in_proportion(labels: ClassIndices, wanted: int, rng: np.random.Generator) -> np.ndarray:
    """``wanted`` row indices, every class in proportion to its size and with one row at least while there is room."""
    order = rng.permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    counts = np.bincount(labels)
    rank_in_class = np.arange(len(labels)) - np.repeat(np.cumsum(counts) - counts, counts)
    share = rank_in_class / counts[labels[by_class]]
    return np.sort(by_class[np.lexsort((rng.random(len(labels)), share))[:wanted]])


def principal_components(features: Features) -> tuple[Float64[np.ndarray, "num_samples num_directions"], float]:
    """Coordinates along the leading principal directions, and the share of the variance that they hold.

    Float64 throughout: NCA amplifies differences of rounding size, and float32 and float64 copies of the same features
    should take the same path.
    """
    centred = features - features.mean(axis=0, dtype=np.float64)
    num_samples, num_features = centred.shape
    is_dual = num_samples <= num_features
    values, vectors = np.linalg.eigh(centred @ centred.T if is_dual else centred.T @ centred)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    resolution = np.square(8 * np.finfo(features.dtype).eps * np.linalg.norm(features, axis=None).astype(np.float64))
    filled = int(np.sum(values > max(_CONSTANT * values[0], resolution)))
    if not filled:
        return np.zeros((num_samples, 0)), 1.0
    kept = min(filled, num_samples - 1, _NUM_DIRECTIONS)
    axes = vectors[:, :kept]
    points = axes * np.sqrt(values[:kept]) if is_dual else centred @ axes
    return points, float(values[:kept].sum() / values.sum())


def _share_of_neighbours(
    embedded: Float32[np.ndarray, "num_samples num_components"], labels: ClassIndices, k: int, *, loo: bool
) -> np.ndarray:
    """p(y_i | A x_i) of every row: how many of its nearest rows share its class, as a share."""
    norms = np.einsum("ij,ij->i", embedded, embedded)
    distances = norms[:, None] + norms - 2 * (embedded @ embedded.T)
    np.fill_diagonal(distances, np.inf if loo else -np.inf)
    num_neighbours = min(k, len(labels) - 1 if loo else len(labels))
    nearest = np.argpartition(distances, num_neighbours - 1, axis=1)[:, :num_neighbours]
    return np.mean(labels[nearest] == labels[:, None], axis=1)
