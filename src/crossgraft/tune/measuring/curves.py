"""Predictions as figures show them: who was taken for what, reliability, ROC."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.metrics.calibration_error import NUM_BINS
from crossgraft.metrics.record import ConfusionRecord, ReliabilityBin, RocRecord
from crossgraft.tasks import Probabilities, Task, Thresholds, task_of
from crossgraft.types import ClassIndices, Targets

_MOST_POINTS = 200


def confusion_record(
    decisions: ClassIndices, targets: ClassIndices, class_names: Sequence[str], *, split: str
) -> ConfusionRecord:
    """Counts of true class (rows) and decided class (columns)."""
    counts = np.zeros((len(class_names), len(class_names)), dtype=np.int64)
    np.add.at(counts, (targets, decisions), 1)
    return ConfusionRecord(class_names=list(class_names), counts=counts.tolist(), split=split)


def reliability_bins(probabilities: Probabilities, targets: Targets) -> list[ReliabilityBin]:
    """The 15 bins that the calibration error is computed from; with labels, all labels together."""
    stated = task_of(targets).confidences(probabilities, targets)
    confidence, right = (np.column_stack(columns).ravel() for columns in zip(*stated, strict=True))
    edges = np.linspace(0, 1, NUM_BINS + 1)
    places = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, NUM_BINS - 1)
    return [
        ReliabilityBin(
            low=float(edges[number]),
            high=float(edges[number + 1]),
            num_images=int(here.sum()),
            mean_probability=float(confidence[here].mean()) if here.any() else None,
            share_right=float(right[here].mean()) if here.any() else None,
        )
        for number in range(NUM_BINS)
        for here in [places == number]
    ]


def roc_records(
    probabilities: Probabilities,
    targets: Targets,
    *,
    task: Task,
    class_names: Sequence[str],
    thresholds: Thresholds | None,
    split: str,
) -> list[RocRecord]:
    """One curve a class or label, of two classes that of the last; those without images on both sides are left out."""
    columns = task.curve_columns(len(class_names))
    limits = None if thresholds is None else np.broadcast_to(thresholds, (len(probabilities), len(columns)))
    records: list[RocRecord] = []
    for place, column in enumerate(columns):
        truth = task.members(targets, column)
        if not 0 < truth.sum() < len(truth):
            continue
        false_rates, true_rates = _curve(probabilities[:, column], truth)
        mark: tuple[float, float] | None = None
        if limits is not None:
            called = probabilities[:, column] >= limits[:, place]
            mark = float(called[~truth].mean()), float(called[truth].mean())
        records.append(
            RocRecord(
                class_name=class_names[column],
                false_positive_rates=false_rates,
                true_positive_rates=true_rates,
                at_threshold=mark,
                split=split,
            )
        )
    return records


def _curve(scores: Float[np.ndarray, " n"], truth: Bool[np.ndarray, " n"]) -> tuple[list[float], list[float]]:
    """False and true positive rates from the highest threshold down, beginning at (0, 0)."""
    order = np.argsort(-scores, kind="stable")
    last_of_level = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))
    found = np.cumsum(truth[order])[last_of_level] / truth.sum()
    alarms = np.cumsum(~truth[order])[last_of_level] / (~truth).sum()
    if len(found) > _MOST_POINTS - 1:
        kept = np.unique(np.linspace(0, len(found) - 1, _MOST_POINTS - 1).round().astype(int))
        found, alarms = found[kept], alarms[kept]
    return [0.0, *alarms.tolist()], [0.0, *found.tolist()]
