"""Average precision; its mean over labels is mAP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.metrics._columns import Classes, Marks, Scores
from crossgraft.metrics._intervals import MetricValue, Part, Units, mean_of_parts, smooth_part
from crossgraft.metrics.auc import checked_scores
from crossgraft.types import Groups


def average_precision(
    scores: Scores,
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    class_names: Sequence[str] | None = None,
) -> MetricValue:
    """Average precision: mean over the positive images of the precision at their score; mAP is its mean over columns.

    AP = Σ_k (R_k − R_{k−1}) P_k over the distinct scores from the highest down, as scikit-learn: a step, no
    interpolation; images of equal score enter together. A score without meaning has the share of positives, not ½.

    Args:
        scores: (n,) for two classes, larger = rather class 1; or (n, C), one column per class or label.
        targets: (n,) class 0 … C−1 of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        class_names: Names of the columns, for messages.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: All images are of one class.

    Cost: O(C n log n).

    >>> round(average_precision(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])).value, 4)
    0.8333
    """
    columns, matrix = checked_scores(scores, targets, class_names, metric="Average precision")
    units = Units(groups, len(matrix))
    parts = (
        _precision_part(matrix[:, column], columns.truth[:, column], units, columns.names[column])
        for column in columns.counted
    )
    return mean_of_parts(parts, units, columns.left_out)


def _precision_part(
    scores: Float[np.ndarray, " n"], is_positive: Bool[np.ndarray, " n"], units: Units, name: str
) -> Part:
    """AP = (1/P) Σ_i T_i / N_i over positive i; T and N count positive and all images that score at least as high.

    Weighting image j adds to T_i and N_i of every i that it is not below, so that its influence is
    [y_j (T_j/N_j − AP) + y_j Σ_i 1/N_i − Σ_i T_i/N_i²] / P over positive i with s_i ≤ s_j.
    """
    _, level, at_level = np.unique(scores, return_inverse=True, return_counts=True)
    positives = np.bincount(level, weights=is_positive)
    above = np.cumsum(positives[::-1])[::-1]
    number = np.cumsum(at_level[::-1])[::-1]
    precision = above / number
    num_positive = float(is_positive.sum())
    value = min(1.0, float(positives @ precision) / num_positive)
    gain = precision - value + np.cumsum(positives / number)
    loss = np.cumsum(positives * precision / number)
    influence = (np.where(is_positive, gain[level], 0.0) - loss[level]) / num_positive
    return smooth_part(value, influence, is_positive, units, name)
