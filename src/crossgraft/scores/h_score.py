"""H-score: between-class spread in units of the covariance."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float64

from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Spectrum, Statistics
from crossgraft.types import Features, Labels


@score(
    title="H-score",
    reference="Bao, Li, Huang, Zhang, Zheng, Zamir and Guibas, An Information-Theoretic Approach to Transferability in "
    "Task Transfer Learning, ICIP 2019, definition 2",
    invariances=("padding", "rotation", "scale", "shift"),
    no_value_for=("constant features",),
    cost="one Gram matrix and one eigendecomposition of size min(n, d), then O(min(n, d)²·C)",
)
def h_score(features: Features, labels: Labels, *, statistics: Statistics = SHARED) -> ScoreValue:
    """tr(cov(x)⁺ cov(E[x | y])) = Σ_c n_c (μ_c−m)ᵀ T⁺ (μ_c−m), T the centred scatter.

    Directions are taken as empty below σ_max·max(1e-15, 10·size·ε), size = min(n, d) and ε of float64.

    Args:
        features: (n, d).
        labels: (n,).
        statistics: Shared statistics of the same features and labels.

    Returns:
        In [0, C−1]; higher is better. With n − 1 ≤ d (rows in general position) it is C−1 whatever the features, and a
        warning says so. NaN with a warning when all features are constant.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([y, np.linspace(-1, 1, 40)])
        >>> 0 < h_score(features=X, labels=y) <= 1
        True
    """
    label_free = statistics.label_free
    if label_free.is_constant:
        reason = "All features are constant, so there is no covariance to compare with."
        return ScoreValue(math.nan, warnings=(*statistics.warnings, reason))
    spectrum = label_free.resolved(min(label_free.features.shape)).scatter_spectrum
    warnings = list(statistics.warnings)
    if label_free.num_samples - 1 <= label_free.num_features:
        warnings.append(
            f"With {label_free.num_samples} images of {label_free.num_features} features the H-score is the number of "
            "classes minus one whatever the features; use the regularised H-score."
        )
    coordinates = _whitened_means(spectrum, statistics)
    if len(coordinates) == label_free.num_samples - 1:  # a linear map of the features makes any labels: no rounding of them
        value = float(statistics.num_classes - 1)
    else:
        value = float(statistics.class_counts @ np.square(coordinates).sum(axis=0))
    return ScoreValue(value, parts={"directions": len(coordinates)}, warnings=warnings)


def _whitened_means(spectrum: Spectrum, statistics: Statistics) -> Float64[np.ndarray, "num_directions num_classes"]:
    """T^(−½) (μ_c−m) along every direction that is not empty.

    In the dual, μ_c−m = X̃ᵀ w_c with w_c = 1[y=c]/n_c − 1/n and the centred features X̃; its coordinate along the
    direction X̃ᵀq/√σ is √σ qᵀw_c, so the factor σ^(−½) leaves qᵀw_c.
    """
    kept = spectrum.values > spectrum.smallest
    if statistics.label_free.is_dual:
        return spectrum.along(statistics.class_weights)[kept]
    return spectrum.along(statistics.mean_offsets.T)[kept] / np.sqrt(spectrum.values[kept])[:, None]
