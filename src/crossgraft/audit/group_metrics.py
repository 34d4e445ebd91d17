"""Results by class and artefact: the four cells in which a shortcut shows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, Integer

from crossgraft.audit.record import AuditCell, AuditMetric
from crossgraft.errors import DataError
from crossgraft.metrics import MetricValue, auc, share_of_images
from crossgraft.tasks import BinaryTask
from crossgraft.tune.measuring.thresholds import fit_thresholds, threshold_values
from crossgraft.types import Groups


def best_threshold(probabilities: Float[np.ndarray, " num_val"], labels: Int[np.ndarray, " num_val"]) -> float:
    """The probability from which on sensitivity + specificity is largest (Youden), halfway to the next lower one.

    0.5 where no threshold is better than chance.

    >>> best_threshold(np.array([0.1, 0.3, 0.7, 0.9]), np.array([0, 0, 1, 1]))
    0.5
    """
    task, names = BinaryTask(), ("negative", "positive")
    both = np.c_[1 - probabilities, probabilities]
    return float(threshold_values(fit_thresholds(both, labels, task=task, class_names=names, rule="youden"))[0])


GAPS = ("true_positive_gap", "false_positive_gap", "positive_gap")
FEW = 10
"""A cell of fewer images is flagged: its accuracy says little."""
Flags = Integer[np.ndarray, " num_images"]
Decided = Bool[np.ndarray, " num_images"]


class GroupCell(NamedTuple):
    """Images of one class, with the artefact or without.

    Attributes:
        positive: Whether they are of the positive class.
        artefact: Whether they carry it.
        num_images: Number of images.
        accuracy: Share that is decided right, with its interval.
        is_small: Whether there are fewer than ``FEW``.
    """

    positive: bool
    artefact: bool
    num_images: int
    accuracy: MetricValue
    is_small: bool


class GroupMetrics(NamedTuple):
    """Fairness between images with the artefact and without.

    Attributes:
        cells: Those that have images, by class and then by artefact.
        empty: Cells without images, in words; they take no part in anything.
        worst: The cell with the lowest accuracy.
        auc_with: AUC among images with the artefact; None where one class is missing.
        auc_without: The same without it.
        true_positive_gap: True positive rate with the artefact minus that without; None where a cell is empty.
        false_positive_gap: The same of false positives: with the first, equalised odds.
        positive_gap: Share decided positive with the artefact minus that without: demographic parity.
    """

    cells: tuple[GroupCell, ...]
    empty: tuple[str, ...]
    worst: GroupCell
    auc_with: MetricValue | None
    auc_without: MetricValue | None
    true_positive_gap: float | None
    false_positive_gap: float | None
    positive_gap: float | None


def group_metrics(
    probabilities: Float[np.ndarray, " num_images"],
    labels: Flags,
    artefact: Flags,
    *,
    threshold: float = 0.5,
    groups: Groups | None = None,
    decided: Decided | None = None,
) -> GroupMetrics:
    """Accuracy of the four cells (class, artefact), the worst of them, and the gaps between images with it and without.

    Args:
        probabilities: (n,) of the positive class.
        labels: (n,) 1 = positive.
        artefact: (n,) 1 = carries it (or belongs to the group in question).
        threshold: Probability from which on an image is decided positive, picked elsewhere.
        groups: Patient of each image; None takes the images as independent.
        decided: (n,) whether an image is decided positive, in place of ``threshold``.

    Raises:
        DataError: Lengths differ, there is no image, or a value is no probability or no 0 or 1.

    Source: Sagawa, Koh, Hashimoto and Liang, Distributionally Robust Neural Networks for Group Shifts, ICLR 2020; gaps after
    Hardt, Price and Srebro, Equality of Opportunity in Supervised Learning, NeurIPS 2016.
    """
    scores = np.asarray(probabilities, dtype=np.float64)
    truth, carries = flags_of(labels, "labels"), flags_of(artefact, "artefact")
    _refuse(scores, truth, carries, groups)
    decided = scores >= threshold if decided is None else decided
    cells: list[GroupCell] = []
    empty: list[str] = []
    for positive in (False, True):
        for with_it in (False, True):
            rows = (truth == positive) & (carries == with_it)
            if rows.any():
                right = (decided == truth)[rows].astype(np.float64)
                accuracy = share_of_images(right, None if groups is None else np.asarray(groups)[rows])
                cells.append(GroupCell(positive, with_it, accuracy.num_images, accuracy, accuracy.num_images < FEW))
            else:
                empty.append(f"{'positive' if positive else 'negative'} {'with' if with_it else 'without'} the artefact")
    return GroupMetrics(
        cells=tuple(cells),
        empty=tuple(empty),
        worst=min(cells, key=lambda cell: cell.accuracy.value),
        auc_with=_auc(scores, truth, carries, groups),
        auc_without=_auc(scores, truth, ~carries, groups),
        true_positive_gap=_gap(decided, carries, truth),
        false_positive_gap=_gap(decided, carries, ~truth),
        positive_gap=_gap(decided, carries, np.ones_like(truth)),
    )


def gap_metrics(groups: Sequence[GroupMetrics]) -> list[AuditMetric]:
    """The three gaps, mean over folds; a fold in which a cell is empty has none."""
    known = {name: [float(gap) for fold in groups if (gap := getattr(fold, name)) is not None] for name in GAPS}
    return [AuditMetric(name=name, value=float(np.mean(gaps)) if gaps else None) for name, gaps in known.items()]


def mean_cells(groups: Sequence[GroupMetrics]) -> list[AuditCell]:
    """The cells of the first fold, which all folds have, with accuracies that are means over the folds."""
    of_cells = zip(*(fold.cells for fold in groups), strict=True)
    means = [float(np.mean([cell.accuracy.value for cell in of_folds])) for of_folds in of_cells]
    cells = zip(groups[0].cells, means, strict=True)
    return [AuditCell.model_validate({**cell._asdict(), "accuracy": mean}) for cell, mean in cells]


def _auc(scores: np.ndarray, truth: np.ndarray, rows: np.ndarray, groups: Groups | None) -> MetricValue | None:
    if len(np.unique(truth[rows])) < 2:
        return None
    return auc(scores[rows], truth[rows].astype(np.int64), None if groups is None else np.asarray(groups)[rows])


def _gap(decided: np.ndarray, carries: np.ndarray, among: np.ndarray) -> float | None:
    """Share decided positive among these images, with the artefact minus without."""
    with_it, without = (decided[among & side] for side in (carries, ~carries))
    return float(with_it.mean() - without.mean()) if len(with_it) and len(without) else None


def flags_of(values: np.ndarray, name: str) -> Bool[np.ndarray, " num_images"]:
    """0 and 1 as truth values.

    Raises:
        DataError: A value is something else.
    """
    known = np.asarray(values)
    if not np.isin(known, (0, 1)).all():
        raise DataError(f"{name} must be 0 or 1 for each image.")
    return known.astype(bool)


def _refuse(scores: np.ndarray, truth: np.ndarray, carries: np.ndarray, groups: Groups | None) -> None:
    lengths = {len(scores), len(truth), len(carries)} | (set() if groups is None else {len(groups)})
    if len(lengths) > 1 or not len(scores):
        raise DataError(
            f"Every image needs a probability, a label and an artefact flag; there are {len(scores)}, {len(truth)} and "
            f"{len(carries)}."
        )
    if not all(map(math.isfinite, scores.tolist())) or scores.min() < 0 or scores.max() > 1:
        raise DataError("Probabilities must lie in [0, 1].")
