"""TransRate: the mutual information of features and labels, by coding rates."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky

from crossgraft.errors import UsageError
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import FeatureStatistics, Statistics
from crossgraft.types import Features, Labels

_LARGEST_ROUNDING = 1e-6


@score(
    title="TransRate",
    reference="Huang, Huang, Rong, Yang and Wei, Frustratingly Easy Transferability Estimation, ICML 2022, eqs. 3 and 5",
    invariances=("rotation", "shift"),
    cost="C + 1 determinants of size min(n_c, d)",
)
def transrate(
    features: Features, labels: Labels, *, epsilon: float = 1e-4, statistics: Statistics | None = None
) -> ScoreValue:
    """R(Z) − (1/C) Σ_c R(Z_c) with the coding rate R(A) = ½ log det(I + AᵀA / (n_A ε)).

    Z are the features minus their mean, Z_c the rows of class c of Z (not centred again). Every class weighs 1/C
    whatever its size.

    Args:
        features: (n, d).
        labels: (n,).
        epsilon: Distortion that the code may have, > 0.
        statistics: Shared statistics of the same features and labels.

    Returns:
        Any real number; higher is better. Depends on the scale of the features.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: ``epsilon`` is not positive.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([y, np.linspace(-1, 1, 40)])
        >>> sorted(transrate(features=X, labels=y).parts)
        ['classes', 'whole']
    """
    if not epsilon > 0:
        raise UsageError(f"`epsilon` must be positive, got {epsilon}.")
    statistics = statistics or Statistics(FeatureStatistics(features), labels)
    label_free = statistics.label_free
    whole = label_free.remember(
        ("coding rate", epsilon),
        lambda: _coding_rate(label_free.moments.scatter(), label_free.num_samples, epsilon),
    )
    per_class = [
        _coding_rate(_class_product(statistics, index), int(count), epsilon)
        for index, count in enumerate(statistics.class_counts)
    ]
    value = whole - float(np.mean(per_class))
    return ScoreValue(value, parts={"whole": whole, "classes": float(np.mean(per_class))}, warnings=statistics.warnings)


def _coding_rate(product: np.ndarray, num_rows: int, epsilon: float) -> float:
    """R of the rows whose Gram matrix (or dual) is ``product``."""
    scaled = product / (num_rows * epsilon)
    rounding = np.trace(scaled) * len(scaled) * np.finfo(np.float64).eps
    if rounding > _LARGEST_ROUNDING:  # beside 1 on the diagonal: directions that are empty would not be
        values = np.linalg.eigvalsh(scaled)
        return 0.5 * float(np.log1p(values[values > rounding]).sum())
    scaled.flat[:: len(scaled) + 1] += 1
    factor = cholesky(scaled, lower=True, overwrite_a=True, check_finite=False)
    return float(np.log(np.diagonal(factor)).sum())


def _class_product(statistics: Statistics, index: int) -> np.ndarray:
    """Z_cᵀZ_c, or Z_cZ_cᵀ where the class has fewer rows than there are features."""
    label_free = statistics.label_free
    members = np.flatnonzero(statistics.targets == index)
    if label_free.is_dual:
        return label_free.remember("scatter", label_free.moments.scatter)[np.ix_(members, members)]
    rows = label_free.features[members] - label_free.mean.astype(label_free.features.dtype)
    product = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    return product.astype(np.float64)
