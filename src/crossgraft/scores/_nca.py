"""Neighbourhood components analysis (Goldberger et al., NeurIPS 2004), with float32 matrix products.

p_ij = exp(−‖A x_i − A x_j‖²) / Σ_{k≠i} exp(−‖A x_i − A x_k‖²), p_ii = 0; p_i = Σ_{j of the class of i} p_ij. The objective
is Σ_i p_i. Its gradient needs W_ij = p_ij (1[same class] − p_i) only: with the embedding E = X Aᵀ,

    ∂/∂A = 2 ((W + Wᵀ) E − diag(column sums of W) E)ᵀ X     (sums of the rows of W are 0).

Objective, start and stop rule are those of scikit-learn's ``NeighborhoodComponentsAnalysis``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64
from scipy.optimize import minimize
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crossgraft.types import ClassIndices

_MAX_ITERATIONS = 50
_TOLERANCE = 1e-5
_FARTHEST = np.float32(-40)
"""Exponent below which a neighbour does not count: n · exp(−40) is far below the resolution of float32."""


class NcaFit(NamedTuple):
    """What ``fit_nca`` found.

    Attributes:
        embedded: A x_i, (n, components).
        objective: Mean of p_i, the expected accuracy of the stochastic classifier, leave-one-out.
        num_evaluations: Number of evaluations of objective and gradient.
    """

    embedded: Float32[np.ndarray, "num_samples num_components"]
    objective: float
    num_evaluations: int


def fit_nca(
    points: Float64[np.ndarray, "num_samples num_directions"], labels: ClassIndices, *, num_components: int
) -> NcaFit:
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
    found = minimize(
        objective,
        start.ravel(),
        method="L-BFGS-B",
        jac=True,
        tol=_TOLERANCE,
        options={"maxiter": _MAX_ITERATIONS},
    )
    embedded = points.astype(np.float32) @ found.x.reshape(start.shape).astype(np.float32).T
    return NcaFit(embedded, -float(found.fun) / len(points), int(found.nfev))


def _start(points: np.ndarray, labels: np.ndarray, num_components: int) -> np.ndarray:
    num_samples, num_directions = points.shape
    num_classes = int(labels.max()) + 1
    if num_components <= min(num_directions, num_classes - 1) and num_classes < num_samples:
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
