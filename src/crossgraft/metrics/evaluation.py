"""Every metric of one set of predictions: over all images, of each class, of subgroups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics._intervals import CONFIDENCE, MetricValue, Units, share_of_images
from crossgraft.metrics.auc import auc
from crossgraft.metrics.average_precision import average_precision
from crossgraft.metrics.balanced_accuracy import balanced_accuracy
from crossgraft.metrics.calibration_error import calibration_error
from crossgraft.metrics.f1 import f1
from crossgraft.metrics.proper_scores import brier_score, negative_log_likelihood
from crossgraft.metrics.rows import MetricRow
from crossgraft.metrics.sensitivity import sensitivity, specificity
from crossgraft.metrics.subgroups import MISSING, Subgroup, confidence_of_each, gap_row, subgroups_of
from crossgraft.tasks import AnyTask, Probabilities, Task, Thresholds, task_named
from crossgraft.types import Groups, Targets


def decide(
    probabilities: Probabilities, *, task: AnyTask, thresholds: Thresholds | None = None
) -> Int[np.ndarray, " num_samples"] | Int[np.ndarray, "num_samples num_classes"]:
    """Decisions from probabilities.

    Args:
        probabilities: (n, C) in [0, 1].
        task: ``multi-class`` takes the most probable class, the first of equal ones; ``binary`` the last class where its
            probability is at least the threshold; ``multi-label`` every label that reaches its own.
        thresholds: Thresholds in [0, 1]: one number, one per label, or (n, labels) where models differ from image to
            image, as those of folds do; by default 0.5. None for ``multi-class``.

    Returns:
        Class of each image (n,), or 0/1 for every label (n, C).

    Raises:
        DataError: Thresholds for several classes, a wrong number of them, or one that is no number.
        UnknownNameError: There is no such task.
    """
    return task_named(task).decide(probabilities, thresholds)


Compute = Callable[[], MetricValue]


class _OfClasses(TypedDict):
    """What metrics of several classes take alike."""

    class_names: Sequence[str]
    confidence: float


def evaluate_predictions(
    probabilities: Probabilities,
    targets: Targets,
    *,
    task: AnyTask,
    class_names: Sequence[str],
    groups: Groups | None = None,
    attributes: Mapping[str, Shaped[np.ndarray, " num_samples"]] | None = None,
    thresholds: Thresholds | None = None,
) -> list[MetricRow]:
    """All metrics with their intervals: first over all images, then of each class or label, then of subgroups.

    Binary predictions get AUC, average precision, F1, sensitivity and specificity of the last class. Accuracy, balanced
    accuracy, F1, sensitivity and specificity judge what ``decide`` makes of the probabilities, so with ``thresholds``
    they are those of the decisions that are delivered.

    Subgroups are the values of every column of ``attributes``, those with fewer than 10 images refused. A column of
    numbers with more than 10 distinct values is cut into thirds; any other column with more than 10 is refused. A mean
    over classes is refused where a class that counts in all images has none in the subgroup: it would compare different
    means. The largest gap between two subgroups comes last, for all but the calibration error, with an interval that knows that
    it is the largest of several.

    Args:
        probabilities: (n, C) in [0, 1], C = 2 for ``binary``; rows sum to 1 unless ``multi-label``.
        targets: (n,) class 0 … C−1, or (n, C) with 0/1 for every label.
        task: Kind of the targets.
        class_names: Names of the C classes or labels.
        groups: Patient of each image; None takes the images as independent.
        attributes: Column → value of each image.
        thresholds: Thresholds as for ``decide``.

    Returns:
        Rows in a fixed order; a metric that has no meaning here has a reason instead of a value.

    Raises:
        DataError: No image, shapes that do not match, or numbers that are no probabilities.

    Cost: O(C n log n) for all images, the same again for each column of attributes.
    """
    names, probabilities = tuple(class_names), probabilities.astype(np.float64)
    everything = _Evidence(probabilities, targets, task_named(task), names, groups, thresholds)
    everything.task.check_predictions(probabilities, targets, len(names))
    Units(groups, len(probabilities))  # refuses groups of other rows
    rows = list(everything.overall())
    overall = {row.metric: row for row in rows}
    rows += everything.by_class()
    for column, values in (attributes or {}).items():
        if len(values) != len(targets):
            raise DataError(f"The attribute {column} has {len(values)} values and there are {len(targets)} images.")
        rows += _of_attribute(everything, column, values, overall)
    return rows


@dataclass(frozen=True)
class _Evidence:
    """Predictions and what was true, of all images or of a subgroup."""

    probabilities: Float[np.ndarray, "n c"]
    targets: Int[np.ndarray, " n"] | Int[np.ndarray, "n c"]
    task: Task
    names: tuple[str, ...]
    groups: Groups | None = field(repr=False)
    thresholds: Thresholds | None
    confidence: float = CONFIDENCE

    def among(self, rows: Bool[np.ndarray, " n"]) -> _Evidence:
        """The same of a subgroup."""
        groups = None if self.groups is None else self.groups[rows]
        limits = self.thresholds
        if isinstance(limits, np.ndarray) and limits.ndim == 2:
            limits = limits[rows]
        return _Evidence(self.probabilities[rows], self.targets[rows], self.task, self.names, groups, limits, self.confidence)

    @property
    def decisions(self) -> Int[np.ndarray, " n"] | Int[np.ndarray, "n c"]:
        return self.task.decide(self.probabilities, self.thresholds)

    def overall(self) -> Iterator[MetricRow]:
        """Metrics of all classes together; of two classes, those of the last."""
        p, y, decided, groups = self.probabilities, self.targets, self.decisions, self.groups
        correct, confidence = self.task.shares_right(decided, y), self.confidence
        of_classes = _OfClasses(class_names=self.names, confidence=confidence)
        yield self._row("accuracy", lambda: share_of_images(correct, groups, confidence=confidence))
        yield self._row("balanced_accuracy", lambda: balanced_accuracy(decided, y, groups, **of_classes))
        if self.task.is_question:
            yield from self._of_question(p[:, 1], decided, y, name=None)
        else:
            yield self._row("auc", lambda: auc(p, y, groups, **of_classes))
            yield self._row("average_precision", lambda: average_precision(p, y, groups, **of_classes))
            yield self._row("f1", lambda: f1(decided, y, groups, **of_classes))
        yield self._row("calibration_error", lambda: calibration_error(p, y, groups))
        yield self._row("brier_score", lambda: brier_score(p, y, groups, confidence=confidence))
        yield self._row("negative_log_likelihood", lambda: negative_log_likelihood(p, y, groups, confidence=confidence))

    def by_class(self) -> Iterator[MetricRow]:
        """Metrics of each class against all others, or of each label; two classes were said already."""
        decided = self.decisions
        for column, name in enumerate(() if self.task.is_question else self.names):
            truth, chosen = (self.task.members(values, column).astype(np.int64) for values in (self.targets, decided))
            yield from self._of_question(self.probabilities[:, column], chosen, truth, name=name)

    def _of_question(
        self, scores: Float[np.ndarray, " n"], decided: Int[np.ndarray, " n"], y: Int[np.ndarray, " n"], name: str | None
    ) -> Iterator[MetricRow]:
        groups, confidence = self.groups, self.confidence
        about = name if name is not None else self.names[-1]
        asked = _OfClasses(class_names=(about,), confidence=confidence)
        yield self._row("auc", lambda: auc(scores, y, groups, **asked), name)
        yield self._row("average_precision", lambda: average_precision(scores, y, groups, **asked), name)
        yield self._row("f1", lambda: f1(decided[:, None], y[:, None], groups, **asked), name)
        yield self._row("sensitivity", lambda: sensitivity(decided, y, groups, confidence=confidence), about)
        yield self._row("specificity", lambda: specificity(decided, y, groups, confidence=confidence), about)

    def _row(self, metric: str, compute: Compute, class_name: str | None = None) -> MetricRow:
        try:
            value = compute()
        except NotApplicable as refusal:
            units = Units(self.groups, len(self.probabilities))
            return MetricRow(metric, None, None, None, units.num_images, units.num_groups, class_name, reason=refusal.reason)
        return MetricRow(metric, *value[:5], class_name=class_name, note=value.note, left_out=value.left_out)


def _of_attribute(
    everything: _Evidence, column: str, values: Shaped[np.ndarray, " n"], overall: Mapping[str, MetricRow]
) -> Iterator[MetricRow]:
    """Metrics of the subgroups of one column, then the largest gap of each."""
    subgroups = subgroups_of(column, values)
    if isinstance(subgroups, str):
        num_images = len(everything.probabilities)
        yield MetricRow("accuracy", None, None, None, num_images, None, attribute=column, attribute_value="", reason=subgroups)
        return
    rows = _of_subgroups(everything, column, subgroups, overall)
    yield from rows
    compared = [subgroup for subgroup in subgroups if subgroup.reason is None and subgroup.value != MISSING]
    if len(compared) < 2:
        return
    at_once = replace(everything, confidence=confidence_of_each(len(compared)))
    of_pairs = rows if len(compared) == 2 else _of_subgroups(at_once, column, compared, overall)
    for metric in dict.fromkeys(row.metric for row in rows):
        gap = gap_row([row for row in of_pairs if row.metric == metric])
        if gap is not None:
            yield gap


def _of_subgroups(
    everything: _Evidence, column: str, subgroups: Sequence[Subgroup], overall: Mapping[str, MetricRow]
) -> list[MetricRow]:
    return [
        row._replace(attribute=column, attribute_value=subgroup.value)
        for subgroup in subgroups
        for row in _of_subgroup(everything, subgroup, overall)
    ]


def _of_subgroup(everything: _Evidence, subgroup: Subgroup, overall: Mapping[str, MetricRow]) -> Iterator[MetricRow]:
    num_images = int(subgroup.rows.sum())
    if subgroup.reason is not None:
        yield MetricRow("accuracy", None, None, None, num_images, None, reason=subgroup.reason)
        return
    part = everything.among(subgroup.rows)
    for row in part.overall():
        if row.value is not None and row.left_out != overall[row.metric].left_out:
            reason = "A class has no image in this subgroup, so that the mean would be over other classes than elsewhere."
            yield row._replace(value=None, low=None, high=None, note=None, reason=reason)
        else:
            yield row
