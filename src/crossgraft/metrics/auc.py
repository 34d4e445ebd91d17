"""Area under the ROC curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, cast

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import brentq

from crossgraft.errors import DataError
from crossgraft.metrics._intervals import (
    CONFIDENCE,
    ROUNDING,
    MetricValue,
    Part,
    Units,
    drawn_towards,
    mean_of_parts,
    two_sided,
    unknown_part,
)
from crossgraft.metrics.rows import Classes, Columns, Marks, Scores, as_columns, counted_columns
from crossgraft.statistics.midranks import midranks
from crossgraft.tasks import task_of
from crossgraft.types import Groups

_EDGE = 1e-12
"""An AUC of 1 has the variance 0; the search for the lower end starts this far below."""


def auc(
    scores: Scores,
    targets: Classes | Marks,
    groups: Groups | None = None,
    *,
    class_names: Sequence[str] | None = None,
    average: Literal["one-vs-rest", "pairwise"] = "one-vs-rest",
    confidence: float = CONFIDENCE,
) -> MetricValue:
    """Area under the ROC curve: how often a positive image has a higher score than a negative one, ties counting half.

    AUC = (1 / n₁n₀) Σ_i Σ_j [s_i > s_j] + ½ [s_i = s_j] over positive i and negative j, by ranks. Its variance is DeLong's;
    with groups his structural components are first added up over each group, after Obuchowski. The interval holds every
    AUC that is nearer than its own standard error allows, where the variance changes with the AUC as Hanley and McNeil
    found and is at least DeLong's at the estimate (Newcombe's method 5): it stays in [0, 1] and does not vanish at 1.
    Several classes give the mean over the classes that occur, each against all others, and its interval knows how they
    vary together.

    Args:
        scores: (n,) for two classes, larger = rather class 1; or (n, C), one column per class or label.
        targets: (n,) class 0 … C−1 of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        class_names: Names of the columns, for messages.
        average: ``pairwise`` is the mean over ordered pairs of classes, each among the images of the two only (Hand and
            Till): it does not depend on how frequent the classes are. One class per image only.
        confidence: Confidence of the interval.

    Returns:
        Without an interval, and with the reason, where one positive or one negative image (or patient) is all there is.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: All images are of one class.
        UsageError: The confidence is not between 0 and 1.

    Cost: O(C n log n); pairwise O(C² n) and C sorts of each image.

    Reference:
        DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837; Obuchowski, Biometrics 53 (1997) 567;
        Hanley and McNeil, Radiology 143 (1982) 29; Newcombe, Stat. Med. 25 (2006) 559; Hand and Till, Machine Learning 45
        (2001) 171.

    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])).value
    0.75
    """
    columns, matrix = checked_scores(scores, targets, class_names, metric="AUC")
    units = Units(groups, len(matrix), confidence)
    if average == "pairwise":
        if not task_of(targets).partitions:
            raise DataError("Pairs of classes need one class per image; with labels, average one-vs-rest.")
        return mean_of_parts(_pairs(matrix, columns, units), units, columns.left_out)
    parts = (auc_part(matrix[:, column], columns.truth[:, column], units, columns.names[column]) for column in columns.counted)
    return mean_of_parts(parts, units, columns.left_out)


def checked_scores(
    scores: Scores, targets: Classes | Marks, class_names: Sequence[str] | None, *, metric: str
) -> tuple[Columns, Float[np.ndarray, "num_samples num_classes"]]:
    """Scores and targets as columns: two classes become the one column of class 1.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: No column has images with and without its class.
    """
    matrix = np.asarray(scores, dtype=np.float64)
    if len(matrix) != len(targets) or len(matrix) == 0:
        raise DataError(f"There are scores of {len(matrix)} images and targets of {len(targets)}; give the same, at least one.")
    if not np.isfinite(matrix).all():
        raise DataError(f"{metric} needs finite scores; {int((~np.isfinite(matrix)).sum())} are not.")
    if matrix.ndim == 1:
        matrix, truth = matrix[:, None], targets.astype(bool).reshape(len(targets), -1)
        class_names = class_names[-1:] if class_names is not None else ["1"]
    else:
        truth = as_columns(targets, matrix.shape[1])
    if truth.shape != matrix.shape:
        raise DataError(f"The scores have {matrix.shape[1]} columns and the targets {truth.shape[1]}; they must match.")
    return counted_columns(truth, class_names, metric=metric, needs_both=True), matrix


def _pairs(matrix: Float[np.ndarray, "n c"], columns: Columns, units: Units) -> Iterator[Part]:
    for column in columns.counted:
        for other in columns.counted:
            if column == other:
                continue
            rows = columns.truth[:, column] | columns.truth[:, other]
            groups = None if units.groups is None else units.groups[rows]
            among = Units(groups, int(rows.sum()), units.confidence)
            name = f"{columns.names[column]} against {columns.names[other]}"
            part = auc_part(matrix[rows, column], columns.truth[rows, column], among, name)
            influence = np.zeros(units.num_images)
            influence[rows] = part.influence
            yield part._replace(influence=influence)


def auc_part(scores: Float[np.ndarray, " n"], is_positive: Bool[np.ndarray, " n"], units: Units, name: str) -> Part:
    """The AUC of two classes with its interval.

    Newcombe's m and n are the positive and negative images divided by the design effect: how often larger DeLong's variance is
    over patients than over images, as far as the patients of the smaller class tell; they are never fewer than patients, nor more
    than images.
    """
    value, influence = auc_influence(scores, is_positive)
    spread = two_sided(influence, is_positive, units)
    if spread is None:
        fewest = min(units.count(is_positive), units.count(~is_positive))
        return unknown_part(value, influence, name, fewest)
    images = np.array([int(is_positive.sum()), int((~is_positive).sum())])
    num_units = np.array(spread.num_units)
    of_images = float(np.square(influence * np.where(is_positive, *np.sqrt(images / (images - 1)).tolist())).sum())
    most = float((images / num_units).max())
    design = max(1.0, spread.variance / of_images) if of_images > ROUNDING else most
    design = drawn_towards(design, most, float(num_units.min()))
    positive, negative = np.clip(images / design, num_units, images).tolist()
    low, high = newcombe_interval(
        value, positive, negative, variance=spread.variance, quantile=units.quantile(int(num_units.sum()) - 2)
    )
    return Part(value, low, high, spread.influence, name, int(num_units.min()))


def auc_influence(scores: Float[np.ndarray, " n"], is_positive: Bool[np.ndarray, " n"]) -> tuple[float, Float[np.ndarray, " n"]]:
    """The AUC of two classes, and the influence of each image: how far its share of won comparisons is from the mean."""
    num_positive = int(is_positive.sum())
    num_negative = len(scores) - num_positive
    ranks = midranks(scores)
    positive, negative = scores[is_positive], scores[~is_positive]
    won = (ranks[is_positive] - midranks(positive)) / num_negative
    lost = (ranks[~is_positive] - midranks(negative)) / num_positive
    value = float(ranks[is_positive].sum() - num_positive * (num_positive + 1) / 2) / (num_positive * num_negative)
    influence = np.empty(len(scores))
    influence[is_positive] = (won - value) / num_positive
    influence[~is_positive] = (1 - lost - value) / num_negative
    return value, influence


def newcombe_interval(value: float, positive: float, negative: float, *, variance: float, quantile: float) -> tuple[float, float]:
    """All θ with (value − θ)² ≤ q² κ h(θ): h is Hanley and McNeil's variance as Newcombe made it symmetric.

    h(θ) = θ(1−θ) [1 + (N−1) ((1−θ)/(2−θ) + θ/(1+θ))] / mn with m and n the numbers of positive and negative images and N
    their mean. κ = max(1, variance / h(value)): images never make the variance smaller than
    h has it, since few of them hardly show one.

    Reference:
        Newcombe, Stat. Med. 25 (2006) 559.

    >>> [round(each, 4) for each in newcombe_interval(0.89367, 58, 51, variance=0.0, quantile=1.959964)]
    [0.8123, 0.9404]
    """
    pairs, fellows = positive * negative, (positive + negative) / 2 - 1

    def shape(theta: float) -> float:
        return theta * (1 - theta) * (1 + fellows * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / pairs

    factor = quantile**2 * (max(1.0, variance / shape(value)) if 0 < value < 1 else 1.0)

    def excess(theta: float) -> float:
        return (value - theta) ** 2 - factor * shape(theta)

    low = brentq(excess, 0.0, min(value, 1 - _EDGE)) if value > 0 else 0.0
    high = brentq(excess, max(value, _EDGE), 1.0) if value < 1 else 1.0
    return cast("float", low), cast("float", high)
