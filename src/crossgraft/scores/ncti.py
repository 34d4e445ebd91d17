"""NCTI: how close the features are to neural collapse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from crossgraft.errors import UsageError
from crossgraft.scores._lda import SMALLEST_SHRINKAGE, WithinClass, posterior_of
from crossgraft.scores._score import Parts, ScoreValue, scale_over_zoo, zoo_score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.types import Features, Labels

_SHRINKING_COMPONENTS = 32
_RANK_TOLERANCE = 1e-4
"""Relative singular value below which a direction is empty, where nothing is shrunk."""


def combine(parts: Sequence[Mapping[str, float]], *, sign: int = -1) -> list[ScoreValue]:
    """mm(seli) + mm(ncc) − mm(vc), mm scaling each part to [0, 1] over the models.

    ``sign=+1`` adds the last part, as the thesis' tables do.
    """
    columns = {name: scale_over_zoo([part[name] for part in parts]) for name in ("seli", "ncc", "vc")}
    totals = zip(columns["seli"], columns["ncc"], columns["vc"], strict=True)
    values = [seli + ncc + sign * vc for seli, ncc, vc in totals]
    reason = "All features are constant, or every class is a single point, so there is no collapse to measure."
    return [
        ScoreValue(value, parts=part, warnings=(reason,) if math.isnan(value) else ())
        for value, part in zip(values, parts, strict=True)
    ]


@zoo_score(
    combine=combine,
    title="NCTI",
    reference="Wang, Luo, Zheng, Huang and Baktashmotlagh, How Far Pre-trained Models Are from Neural Collapse on the Target "
    "Dataset Informs their Transferability, ICCV 2023, eqs. 4–9",
    no_value_for=("constant features", "one image per class"),
    cost="64 eigenvectors of size min(n, d), then O(n·64² + n·C·min(n_c, C))",
)
def ncti(features: Features, labels: Labels, *, n_dims: int = 64, statistics: Statistics = SHARED) -> Parts:
    """Three distances from neural collapse, per model; ``combine`` adds them over the zoo.

    On the first 64 principal components, with a linear discriminant whose within-class scatter is shrunk by
    s = max(exp(−Σ of the 32 leading variances), 1e-10):
    ``seli`` is the nuclear norm of the centred discriminant projection, ``ncc`` the mean posterior of the true class,
    ``vc`` the logarithm of Σ_c ‖posterior matrix of class c‖_*.

    Args:
        features: (n, d).
        labels: (n,).
        n_dims: Principal components, at most min(n − 1, d) are used.
        statistics: Shared statistics of the same features and labels.

    Returns:
        The three parts. Combined: in [−1, 2], only comparable within one zoo; NaN with a warning when all features are
        constant, or all images of each class are one point.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: ``n_dims`` below 1.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> sorted(ncti.parts(features=X, labels=y))
        ['ncc', 'seli', 'vc']
    """
    if n_dims < 1:
        raise UsageError(f"`n_dims` must be at least 1 principal component, got {n_dims}.")
    label_free = statistics.label_free
    if label_free.is_constant:
        return Parts(dict.fromkeys(("seli", "ncc", "vc"), math.nan))
    points = label_free.leading_scores(min(n_dims, label_free.num_samples - 1, label_free.num_features))
    variances = np.square(points[:, :_SHRINKING_COMPONENTS]).sum(axis=0) / (label_free.num_samples - 1)
    shrinkage = max(math.exp(-float(variances.sum())), SMALLEST_SHRINKAGE)
    within = WithinClass(points, statistics)
    if within.trace == 0:
        return Parts(dict.fromkeys(("seli", "ncc", "vc"), math.nan))
    shrunk = shrinkage > SMALLEST_SHRINKAGE
    discriminant = _shrunk_discriminant(within, shrinkage) if shrunk else _plain_discriminant(within)
    posterior = posterior_of(discriminant.log_joint)
    per_class = [posterior[statistics.targets == index] for index in range(statistics.num_classes)]
    parts = {
        "seli": _nuclear_norm(discriminant.projection - discriminant.projection.mean(axis=0)),
        "ncc": posterior[np.arange(len(posterior)), statistics.targets].mean(),
        "vc": math.log(sum(_nuclear_norm(rows) for rows in per_class)),
    }
    return Parts(parts, warnings=statistics.warnings)


class _Discriminant(NamedTuple):
    """Where the images land in discriminant space, and what they are taken for.

    Attributes:
        projection: (n, at most C − 1).
        log_joint: (n, C), up to a constant a row.
    """

    projection: np.ndarray
    log_joint: np.ndarray


def _shrunk_discriminant(within: WithinClass, shrinkage: float) -> _Discriminant:
    """Generalised eigenvectors of between- and shrunk within-class scatter, all C − 1 leading ones."""
    within_scatter = _shrink(_matrix(within), shrinkage)
    total = _shrink(within.offsets.T @ within.offsets / within.num_samples, shrinkage)
    values, vectors = eigh(total - within_scatter, within_scatter)
    leading = vectors[:, np.argsort(values)[::-1][: len(within.means) - 1]]
    return _Discriminant(within.offsets @ leading, within.log_joint(shrinkage))


def _plain_discriminant(within: WithinClass) -> _Discriminant:
    """Without shrinkage: whiten the standardised within-class deviations, then the principal axes of the class means."""
    num_samples, num_classes = within.num_samples, len(within.means)
    prior = within.class_counts / num_samples
    scatter = _matrix(within)  # 1/n
    deviation = np.sqrt(np.diagonal(scatter))
    deviation = np.where(deviation > 0, deviation, 1.0)
    values, vectors = np.linalg.eigh(scatter / np.outer(deviation, deviation))
    vectors = vectors[:, ::-1]
    lengths = np.sqrt(np.maximum(values[::-1], 0.0))
    kept = lengths > _RANK_TOLERANCE
    whitening = vectors[:, kept] / lengths[kept] / deviation[:, None]
    mean = prior @ within.means
    spread = np.sqrt(num_samples * prior / max(num_classes - 1, 1))[:, None] * ((within.means - mean) @ whitening)
    _, sizes, axes = np.linalg.svd(spread, full_matrices=False)
    scalings = whitening @ axes[sizes > _RANK_TOLERANCE * sizes[:1].sum()].T
    centres = (within.means - mean) @ scalings
    points = (within.offsets - mean) @ scalings
    log_joint = points @ centres.T - 0.5 * np.square(centres).sum(axis=1) + np.log(prior)
    return _Discriminant(points[:, : num_classes - 1], log_joint)


def _matrix(within: WithinClass) -> np.ndarray:
    """S_w in its primal form: the points have few dimensions."""
    deviations = within.offsets - within.means[within.targets]
    return deviations.T @ deviations / within.num_samples


def _shrink(matrix: np.ndarray, shrinkage: float) -> np.ndarray:
    shrunk = (1 - shrinkage) * matrix
    shrunk.flat[:: len(shrunk) + 1] += shrinkage * np.trace(matrix) / len(matrix)
    return shrunk


def _nuclear_norm(matrix: np.ndarray) -> float:
    """Sum of the singular values."""
    return float(np.linalg.svd(matrix, compute_uv=False).sum())
