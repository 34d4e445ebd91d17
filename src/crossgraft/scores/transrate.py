"""TransRate: the mutual information of features and labels, by coding rates."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from scipy.linalg import LinAlgError, cholesky, get_lapack_funcs

from crossgraft.errors import UsageError
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.scores._symmetric import to_host
from crossgraft.types import Features, Labels

_LARGEST_ROUNDING = 1e-6
"""Largest rounding error of an eigenvalue, relative to the 1 of the identity."""
_COARSE = 5e-5
"""Error of a logarithm of a determinant, as a share of it, from which float32 is too coarse."""


@score(
    title="TransRate",
    reference="Huang, Huang, Rong, Yang and Wei, Frustratingly Easy Transferability Estimation, ICML 2022, eqs. 3 and 5",
    invariances=("padding", "rotation", "shift"),
    cost="C + 1 determinants of size min(n_c, d)",
)
def transrate(features: Features, labels: Labels, *, epsilon: float = 1e-4, statistics: Statistics = SHARED) -> ScoreValue:
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
    label_free = statistics.label_free
    whole = label_free.remember(
        ("coding rate", epsilon),
        lambda: _coding_rate(lambda inputs: to_host(inputs.moments.scatter()), label_free, label_free.num_samples, epsilon),
    )
    per_class: list[float] = []
    for index, count in enumerate(statistics.class_counts):
        members = np.flatnonzero(statistics.targets == index)
        product = functools.partial(_product_of, members=members)
        per_class.append(_coding_rate(product, label_free, int(count), epsilon))
    value = whole - float(np.mean(per_class))
    return ScoreValue(value, parts={"whole": whole, "classes": float(np.mean(per_class))}, warnings=statistics.warnings)


def _coding_rate(
    form: Callable[[FeatureStatistics], np.ndarray], label_free: FeatureStatistics, num_rows: int, epsilon: float
) -> float:
    """R of the rows whose Gram matrix (or dual) ``form`` gives; in float64 if rounding of float32 counts."""
    rate = _log_determinant(form(label_free) / (num_rows * epsilon), label_free.features.dtype)
    if rate is None:
        rate = _log_determinant(form(label_free.in_float64) / (num_rows * epsilon), np.dtype(np.float64))
    return 0.0 if rate is None else rate / 2


def _log_determinant(product: np.ndarray, dtype: np.dtype) -> float | None:
    """Log det(I + product), ``product`` of rows of ``dtype`` and overwritten; None if float32 is too coarse for it."""
    rounding = float(np.linalg.norm(product)) * np.finfo(dtype).eps
    if dtype == np.float64 and rounding * len(product) > _LARGEST_ROUNDING:  # empty directions would count
        values = np.linalg.eigvalsh(product)
        return float(np.log1p(values[values > rounding * len(product)]).sum())
    product.flat[:: len(product) + 1] += 1
    try:
        factor = cholesky(product, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    value = float(np.log(np.diagonal(factor) ** 2).sum())
    if dtype == np.float64:
        return value
    (invert_triangle,) = get_lapack_funcs(("trtri",), dtype=np.float64)
    inverse, _ = invert_triangle(factor, lower=1)
    error = rounding * float(np.einsum("ij,ij->", inverse, inverse))  # at most ‖E‖ tr M⁻¹; pivots hide small eigenvalues
    return None if error > _COARSE * max(1.0, value) else value


def _product_of(label_free: FeatureStatistics, members: np.ndarray) -> np.ndarray:
    """Z_cᵀZ_c, or Z_cZ_cᵀ where the class has fewer rows than there are features."""
    if label_free.is_dual:
        return label_free.remember("scatter", lambda: to_host(label_free.moments.scatter()))[np.ix_(members, members)]
    rows = label_free.features[members] - label_free.mean.astype(label_free.features.dtype)
    product = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    return product.astype(np.float64)
