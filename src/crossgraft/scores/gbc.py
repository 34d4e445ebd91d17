"""GBC: how far the Gaussian clouds of the classes overlap."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

import numpy as np
from jaxtyping import Float64
from scipy.spatial.distance import cdist

from crossgraft.errors import UsageError
from crossgraft.scores._moments import ColumnMoments
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.types import Features, Labels

SMALLEST_VARIANCE = 1e-4
"""Floor of the variance of a feature within a class, as published."""


@score(
    title="GBC",
    reference="Pándy, Agostinelli, Uijlings, Ferrari and Mensink, Transferability Estimation using Bhattacharyya Class "
    "Separability, CVPR 2022, eqs. 3–5",
    invariances=("shift",),
    cost="64 eigenvectors of a Gram matrix, then O(n·64 + C²·64)",
)
def gbc(
    features: Features,
    labels: Labels,
    *,
    covariance: Literal["spherical", "diagonal"] = "spherical",
    n_dims: int | None = 64,
    strict: bool = False,
    log_sum: bool = False,
    statistics: Statistics = SHARED,
) -> ScoreValue:
    """−Σ_{c≠c'} exp(−B_cc') with the Bhattacharyya distance B of two Gaussians.

    B = ⅛ Σ_j (μ_cj−μ_c'j)² / v̄_j + ½ Σ_j [ln v̄_j − ½ ln v_cj − ½ ln v_c'j], v̄ = (v_c+v_c')/2, variances with 1/n_c and
    a floor of 1e-4.

    Args:
        features: (n, d).
        labels: (n,).
        covariance: One variance per class (the mean over the features), or one per feature and class.
        n_dims: Principal components to look at, as in the paper; None takes the features themselves, whose distances
            are so large that the sum underflows.
        strict: With ``spherical``, count the logarithms once for each of the d features, as the equation says; the
            published code counts them once.
        log_sum: Return −log Σ exp(−B), which orders models in the same way and does not underflow.
        statistics: Shared statistics of the same features and labels.

    Returns:
        In [−C(C−1), 0], or any real number with ``log_sum``; higher is better.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: Unknown ``covariance``, or ``n_dims`` below 1.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> gbc(features=X, labels=y) > gbc(features=X[:, 1:], labels=y)
        True
    """
    if n_dims is not None and n_dims < 1:
        raise UsageError(f"`n_dims` must be at least 1 principal component, or None, got {n_dims}.")
    means, variances = _class_moments(_points(statistics.label_free, n_dims), statistics)
    if covariance == "spherical":
        variances = variances.mean(axis=1, keepdims=True)
        copies = means.shape[1] if strict else 1
    else:
        copies = 1
    warnings = list(statistics.warnings)
    overlaps = [-row for row in _distances(means, variances, copies)]
    log_total = float(np.logaddexp.reduce(np.concatenate(overlaps)))
    value = -log_total if log_sum else -math.exp(log_total)
    if value == 0 and not log_sum:
        warnings.append("All classes are so far apart that the sum underflows to 0; compare models with log_sum=True.")
    return ScoreValue(value, parts={"dimensions": means.shape[1], "log_overlap": log_total}, warnings=warnings)


def _points(label_free: FeatureStatistics, n_dims: int | None) -> np.ndarray:
    """Principal components, or the features themselves, which need no Gram matrix."""
    if n_dims is None:
        return label_free.features
    return label_free.remember(("leading scores", n_dims), lambda: label_free.leading_scores(n_dims))


def _class_moments(points: np.ndarray, statistics: Statistics) -> tuple[np.ndarray, np.ndarray]:
    """Means and floored variances of each class, (C, dims) each. Cost O(n·dims)."""
    members = np.split(np.argsort(statistics.targets, kind="stable"), np.cumsum(statistics.class_counts[:-1].astype(int)))
    moments = [ColumnMoments.of(points[rows]) for rows in members]
    variances = np.square([of_class.deviation for of_class in moments])
    return np.array([of_class.mean for of_class in moments]), np.maximum(variances, SMALLEST_VARIANCE)


def _distances(
    means: Float64[np.ndarray, "num_classes num_features"], variances: Float64[np.ndarray, "num_classes width"], copies: int
) -> Iterator[Float64[np.ndarray, " num_others"]]:
    """B between each class and all other classes, one row per class."""
    is_spherical = variances.shape[1] == 1
    squared = cdist(means, means, "sqeuclidean") if is_spherical else None
    for index in range(len(means)):
        others = np.arange(len(means)) != index
        pooled = (variances[index] + variances[others]) / 2
        if squared is None:
            between = np.sum(np.square(means[index] - means[others]) / pooled, axis=1) / 8
        else:
            between = squared[index, others] / pooled[:, 0] / 8
        logs = np.log(pooled) - 0.5 * np.log(variances[index]) - 0.5 * np.log(variances[others])
        yield between + 0.5 * copies * logs.sum(axis=1)
