"""Average precision; its mean over labels is mAP."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.special import expit, logit

from crossgraft.metrics._intervals import (
    CONFIDENCE,
    ROUNDING,
    MetricValue,
    Part,
    Units,
    mean_of_parts,
    share_interval,
    two_sided,
    unknown_part,
)
from crossgraft.metrics.auc import checked_scores
from crossgraft.metrics.rows import Classes, Marks, Scores
from crossgraft.types import Groups


def average_precision(
    scores: Scores,
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    class_names: Sequence[str] | None = None,
    confidence: float = CONFIDENCE,
) -> MetricValue:
    """Average precision: mean over the positive images of the precision at their score; mAP is its mean over columns.

    AP = Σ_k (R_k − R_{k−1}) P_k over the distinct scores from the highest down, as scikit-learn: a step, no
    interpolation; images of equal score enter together. A score without meaning has the share of positives, not ½.
    The interval is logit(AP) ± t SE / (AP (1 − AP)) with the variance of the influences, and fewer degrees of freedom than
    there are positive units. AP of few positives is too high, since a positive image counts itself among those that score as
    high: the lower end starts from the AP in which it, and its patient, does not.

    Args:
        scores: (n,) for two classes, larger = rather class 1; or (n, C), one column per class or label.
        targets: (n,) class 0 … C−1 of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        class_names: Names of the columns, for messages.
        confidence: Confidence of the interval.

    Returns:
        Without an interval, and with the reason, where one positive or one negative image (or patient) is all there is.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: All images are of one class.
        UsageError: The confidence is not between 0 and 1.

    Cost: O(C n log n).

    >>> round(average_precision(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])).value, 4)
    0.8333
    """
    columns, matrix = checked_scores(scores, targets, class_names, metric="Average precision")
    units = Units(groups, len(matrix), confidence)
    parts = (
        _precision_part(matrix[:, column], columns.truth[:, column], units, columns.names[column]) for column in columns.counted
    )
    return mean_of_parts(parts, units, columns.left_out)


def _precision_part(scores: Float[np.ndarray, " n"], is_positive: Bool[np.ndarray, " n"], units: Units, name: str) -> Part:
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
    spread = two_sided(influence, is_positive, units)
    if spread is None:
        return unknown_part(value, influence, name, min(units.count(is_positive), units.count(~is_positive)))
    fewest = min(spread.num_units)
    if spread.variance <= ROUNDING or value >= 1:
        low, _ = share_interval(value, spread.num_units[0], units.confidence)
        return Part(value, low, 1.0, spread.influence, name, fewest)
    half = units.quantile(min(spread.freedom, spread.num_units[0] - 1)) * np.sqrt(spread.variance) / (value * (1 - value))
    below = _precision_among_others(scores, is_positive, units, number[level].astype(np.float64), above[level])
    low, high = expit(logit(np.array([below, value])) + half * np.array([-1, 1])).tolist()
    return Part(value, low, high, spread.influence, name, fewest)


def _precision_among_others(
    scores: Float[np.ndarray, " n"],
    is_positive: Bool[np.ndarray, " n"],
    units: Units,
    number: Float[np.ndarray, " n"],
    above: Float[np.ndarray, " n"],
) -> float:
    """AP with the precision at each positive image among the images of other units alone; 1 where none scores as high."""
    index = np.arange(len(scores)) if units.index is None else units.index
    order = np.lexsort((-scores, index))
    starts = np.r_[True, np.diff(index[order]) != 0]
    same = ~starts & np.r_[False, np.diff(scores[order]) == 0]
    own = _counted_from_the_top(np.ones(len(order)), starts, same)
    own_positive = _counted_from_the_top(is_positive[order].astype(np.float64), starts, same)
    others, hits = number[order] - own, above[order] - own_positive
    among = np.where(others > 0, hits / np.maximum(others, 1), 1.0)
    return float(among[is_positive[order]].mean())


def _counted_from_the_top(values: Float[np.ndarray, " n"], starts: np.ndarray, same: np.ndarray) -> np.ndarray:
    """Sum of the values of a unit from its highest score down to each image, images of equal score together."""
    total = np.cumsum(values)
    before = np.maximum.accumulate(np.where(starts, total - values, -1))  # sums of counts never fall
    last = np.flatnonzero(np.r_[~same[1:], True])  # of each run of equal scores
    return total[last[np.searchsorted(last, np.arange(len(values)))]] - before
