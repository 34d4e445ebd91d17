"""Area under the ROC curve."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import root_scalar
from scipy.stats import rankdata

from crossgraft.errors import DataError
from crossgraft.metrics._columns import Classes, Columns, Marks, Scores, as_columns, counted_columns
from crossgraft.metrics._intervals import MetricValue, Part, Spread, Units, mean_of_parts, smooth_part
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
) -> MetricValue:
    """Area under the ROC curve: how often a positive image has a higher score than a negative one, ties counting half.

    AUC = (1 / n₁n₀) Σ_i Σ_j [s_i > s_j] + ½ [s_i = s_j] over positive i and negative j, by ranks. Its variance is DeLong's;
    with groups his structural components are first added up over each group, after Obuchowski. The interval holds every
    AUC that is nearer than its own standard error allows, where the variance changes with the AUC as Hanley and McNeil
    found and equals DeLong's at the estimate (Newcombe's method 5, scaled): it stays in [0, 1] and does not vanish at 1.
    Several classes give the mean over the classes that occur, each against all others, and its interval knows how they
    vary together.

    Args:
        scores: (n,) for two classes, larger = rather class 1; or (n, C), one column per class or label.
        targets: (n,) class 0 … C−1 of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        class_names: Names of the columns, for messages.
        average: ``pairwise`` is the mean over ordered pairs of classes, each among the images of the two only (Hand and
            Till): it does not depend on how frequent the classes are. One class per image only.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: All images are of one class.

    Cost: O(C n log n); pairwise O(C² n) and C sorts of each image.

    Reference:
        DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837; Obuchowski, Biometrics 53 (1997) 567;
        Hanley and McNeil, Radiology 143 (1982) 29; Newcombe, Stat. Med. 25 (2006) 559; Hand and Till, Machine Learning 45
        (2001) 171.

    >>> auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([0, 0, 1, 1])).value
    0.75
    """
    columns, matrix = checked_scores(scores, targets, class_names, metric="AUC")
    units = Units(groups, len(matrix))
    if average == "pairwise":
        if not task_of(targets).partitions:
            raise DataError("Pairs of classes need one class per image; with labels, average one-vs-rest.")
        return mean_of_parts(_pairs(matrix, columns, units), units, columns.left_out)
    parts = (
        _auc_part(matrix[:, column], columns.truth[:, column], units, columns.names[column])
        for column in columns.counted
    )
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
        raise DataError(
            f"There are scores of {len(matrix)} images and targets of {len(targets)}; give the same, at least one."
        )
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
            among = Units(None if units.groups is None else units.groups[rows], int(rows.sum()))
            name = f"{columns.names[column]} against {columns.names[other]}"
            part = _auc_part(matrix[rows, column], columns.truth[rows, column], among, name)
            influence = np.zeros(units.num_images)
            influence[rows] = part.influence
            yield part._replace(influence=influence)


def _auc_part(scores: Float[np.ndarray, " n"], is_positive: Bool[np.ndarray, " n"], units: Units, name: str) -> Part:
    """The AUC of two classes with its interval."""
    value, influence = auc_influence(scores, is_positive)
    return smooth_part(value, influence, is_positive, units, name, interval=_score_interval)


def auc_influence(
    scores: Float[np.ndarray, " n"], is_positive: Bool[np.ndarray, " n"]
) -> tuple[float, Float[np.ndarray, " n"]]:
    """The AUC of two classes, and the influence of each image: how far its share of won comparisons is from the mean."""
    num_positive = int(is_positive.sum())
    num_negative = len(scores) - num_positive
    ranks = rankdata(scores)
    positive, negative = scores[is_positive], scores[~is_positive]
    won = (ranks[is_positive] - rankdata(positive)) / num_negative
    lost = (ranks[~is_positive] - rankdata(negative)) / num_positive
    value = float(ranks[is_positive].sum() - num_positive * (num_positive + 1) / 2) / (num_positive * num_negative)
    influence = np.empty(len(scores))
    influence[is_positive] = (won - value) / num_positive
    influence[~is_positive] = (1 - lost - value) / num_negative
    return value, influence


def _score_interval(value: float, spread: Spread) -> tuple[float, float]:
    """All θ with (value − θ)² ≤ q² κ h(θ): h is Hanley and McNeil's variance as Newcombe made it symmetric.

    h(θ) = θ(1−θ) [1 + (N−1) ((1−θ)/(2−θ) + θ/(1+θ))] / mn with m and n the numbers of positive and negative units and N
    their mean; κ makes it the estimated variance at the value, and is 1 where the images show none.
    """
    pairs = spread.num_positive * spread.num_negative
    fellows = (spread.num_positive + spread.num_negative) / 2 - 1

    def shape(theta: float) -> float:
        return theta * (1 - theta) * (1 + fellows * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / pairs

    factor = spread.quantile**2 * (1.0 if spread.variance is None else spread.variance / shape(value))

    def excess(theta: float) -> float:
        return (value - theta) ** 2 - factor * shape(theta)

    low = root_scalar(excess, bracket=(0.0, min(value, 1 - _EDGE))).root if value > 0 else 0.0
    high = root_scalar(excess, bracket=(max(value, _EDGE), 1.0)).root if value < 1 else 1.0
    return float(low), float(high)
