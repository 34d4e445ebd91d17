"""Regularised H-score: between-class spread in units of a shrunk covariance."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics, factor_of, spectrum_of
from crossgraft.scores._symmetric import Factor, Matrix, Spectrum, add_ridge, energy, to_host
from crossgraft.types import Features, Labels

_SMALLEST_RIDGE = 1e-12
"""Share of the trace below which the shrunk covariance may be singular and a pseudo-inverse is taken."""


@score(
    title="Regularised H-score",
    reference="Ibrahim, Ponomareva and Mazumder, Newer is not always better: Rethinking transferability metrics, their "
    "peculiarities, stability and performance, ECML PKDD 2022",
    invariances=("rotation", "scale", "shift"),
    no_value_for=("constant features",),
    cost="one Gram matrix and one Cholesky factorisation of size min(n, d), then O(min(n, d)²·C)",
)
def regularized_h_score(features: Features, labels: Labels, *, statistics: Statistics = SHARED) -> ScoreValue:
    """(1−α) tr(A⁻¹ cov(E[x|y])) with A = (1−α) Σ + α tr(Σ)/d I and Ledoit–Wolf's α.

    Σ is the covariance with 1/n; cov(E[x|y]) = Σ_c n_c (μ_c−m)(μ_c−m)ᵀ / (n−1).

    Args:
        features: (n, d).
        labels: (n,).
        statistics: Shared statistics of the same features and labels.

    Returns:
        About [0, C−1]; higher is better. NaN with a warning when all features are constant. ``parts`` holds the
        shrinkage α.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([y, np.linspace(-1, 1, 40)])
        >>> 0 < regularized_h_score(features=X, labels=y) < 1.1
        True
    """
    label_free = statistics.label_free
    if label_free.is_constant:
        reason = "All features are constant, so there is no covariance to compare with."
        return ScoreValue(math.nan, warnings=(*statistics.warnings, reason))
    shrunk = label_free.remember("shrunk covariance", lambda: _ShrunkCovariance.of(label_free))
    spread = float(statistics.class_counts @ _distances(shrunk, statistics)) / (statistics.num_samples - 1)
    return ScoreValue((1 - shrunk.alpha) * spread, parts={"shrinkage": shrunk.alpha}, warnings=statistics.warnings)


class _ShrunkCovariance(NamedTuple):
    """A = (1−α) T/n + α tr(T)/(n d) I, or the same of the dual of T, ready to be solved with.

    Attributes:
        alpha: The shrinkage, in [0, 1].
        factor: Cholesky factor of A, or its spectrum when α is too small to make A regular.
    """

    alpha: float
    factor: Factor | Spectrum

    @classmethod
    def of(cls, statistics: FeatureStatistics) -> _ShrunkCovariance:
        """Shrink; cost one Cholesky factorisation."""
        num_samples = statistics.num_samples
        matrix = statistics.moments.scatter()
        alpha = _ledoit_wolf(matrix, statistics.squared_norms, num_samples, statistics.num_features)
        trace = float(matrix.trace()) / num_samples
        ridge = alpha * trace / statistics.num_features
        matrix *= (1 - alpha) / num_samples
        add_ridge(matrix, ridge)
        # Rounding of the moments may exceed the ridge, as with few distinct rows.
        factor = factor_of(matrix) if ridge > _SMALLEST_RIDGE * trace else None
        return cls(alpha, factor or spectrum_of(matrix))

    def solve(self, columns: np.ndarray) -> np.ndarray:
        """A⁻¹ (or the pseudo-inverse) times ``columns``."""
        if not isinstance(self.factor, Spectrum):
            return self.factor.solve(columns)
        values, vectors = self.factor.values, self.factor.vectors
        smallest = values[-1] * 10 * len(values) * np.finfo(np.float64).eps
        is_regular = values > smallest
        coordinates = vectors[:, is_regular].T @ columns
        return vectors[:, is_regular] @ (coordinates / values[is_regular, None])


def _distances(shrunk: _ShrunkCovariance, statistics: Statistics) -> np.ndarray:
    """(μ_c−m)ᵀ A⁻¹ (μ_c−m) of every class.

    In the dual, μ_c−m = X̃ᵀw_c with the centred features X̃ and w_c = 1[y=c]/n_c − 1/n, and X̃ A⁻¹ X̃ᵀ = D B⁻¹ for
    D = X̃X̃ᵀ and its shrunk form B.
    """
    if not statistics.label_free.is_dual:
        offsets = statistics.mean_offsets.T
        if not isinstance(shrunk.factor, Spectrum):
            return shrunk.factor.energies(offsets)
        return np.einsum("dc,dc->c", offsets, shrunk.solve(offsets))
    weights = statistics.class_weights
    dual = statistics.label_free.moments.scatter()
    mixed = dual @ weights if isinstance(dual, np.ndarray) else to_host(dual @ dual.new_tensor(weights))
    return np.einsum("nc,nc->c", mixed, shrunk.solve(weights))


def _ledoit_wolf(scatter: Matrix, squared_norms: np.ndarray, num_samples: int, num_features: int) -> float:
    """Ledoit and Wolf's shrinkage (J. Multivariate Analysis 2004), from the scatter (or its dual) and the row norms."""
    if num_features == 1:  # one variance is its own mean: nothing to shrink towards
        return 0.0
    squared_norm = energy(scatter) / num_samples**2  # ‖Σ‖²; the dual has the same
    mean_variance = float(scatter.trace()) / (num_samples * num_features)
    dispersion = (squared_norm - num_features * mean_variance**2) / num_features
    noise = (np.square(squared_norms).mean() - squared_norm) / (num_samples * num_features)
    noise = min(noise, dispersion)
    return noise / dispersion if noise > 0 else 0.0
