"""LFC: whether images with the same label have similar features."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.scores._symmetric import energy, norm
from crossgraft.types import Features, Labels


@score(
    title="LFC",
    reference="Deshpande, Achille, Ravichandran, Li, Zancato, Fowlkes, Bhotika, Soatto and Perona, A linearized framework and a "
    "new benchmark for model selection for fine-tuning, 2021, arXiv 2102.00084 (label-feature correlation)",
    invariances=("padding", "rotation", "scale", "shift"),
    no_value_for=("constant features",),
    cost="one Gram matrix",
)
def lfc(
    features: Features, labels: Labels, *, centring: Literal["rows", "entries"] = "rows", statistics: Statistics = SHARED
) -> ScoreValue:
    """⟨K̃, L̃⟩ / (‖K̃‖ ‖L̃‖) with K = XXᵀ, L = 1 for two images of one class and −1 for two of different classes.

    Args:
        features: (n, d).
        labels: (n,).
        centring: What the tilde takes away. ``rows``: row and column means, K̃ = HKH (the features minus their mean);
            ``entries``: the mean of all n² entries, which makes the value the Pearson correlation of the entries.
        statistics: Shared statistics of the same features and labels.

    Returns:
        In [0, 1] for ``rows``, in [−1, 1] for ``entries``; NaN with a warning when all features are constant. Only
        ``rows`` does not change when the features are shifted.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> round(lfc(features=X, labels=y), 2)
        1.0
    """
    if statistics.label_free.is_constant:
        warnings = (*statistics.warnings, "All features are constant, so they correlate with nothing.")
        return ScoreValue(math.nan, warnings=warnings)
    parts = _of_rows(statistics) if centring == "rows" else _of_entries(statistics)
    value = parts["product"] / (parts["feature_norm"] * parts["label_norm"])
    return ScoreValue(value, parts=parts, warnings=statistics.warnings)


def _of_rows(statistics: Statistics) -> dict[str, float]:
    """With Y the one-hot labels: ⟨HKH, HLH⟩ = 2 ‖Yᵀ H X‖² and ‖HLH‖ = 2 ‖Yᵀ H Y‖, no n×n matrix needed."""
    counts = statistics.class_counts
    label_scatter = np.diag(counts) - np.outer(counts, counts) / statistics.num_samples
    return {
        "product": 2 * float(np.square(counts[:, None] * statistics.mean_offsets).sum()),
        "feature_norm": norm(statistics.label_free.moments.scatter()),
        "label_norm": 2 * float(np.linalg.norm(label_scatter)),
    }


def _of_entries(statistics: Statistics) -> dict[str, float]:
    """⟨K − k̄, L − l̄⟩ = ⟨K, L⟩ − n² k̄ l̄ and so on, with k̄ = ‖m‖² and l̄ = 2 Σ p_c² − 1 the means of the entries."""
    counts, num_samples = statistics.class_counts, statistics.num_samples
    mean = statistics.label_free.mean
    sums = counts[:, None] * (statistics.mean_offsets + mean)
    mean_feature = float(mean @ mean)
    mean_label = float(2 * np.square(counts / num_samples).sum() - 1)
    product = 2 * float(np.square(sums).sum()) - num_samples**2 * mean_feature
    squared = energy(statistics.label_free.moments.gram())
    return {
        "product": product - num_samples**2 * mean_feature * mean_label,
        "feature_norm": math.sqrt(max(squared - (num_samples * mean_feature) ** 2, 0.0)),
        "label_norm": num_samples * math.sqrt(1 - mean_label**2),
    }
