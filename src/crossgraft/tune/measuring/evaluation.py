"""What the picked models predict for held-out images; all folds together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.features.passes import collect
from crossgraft.metrics import MetricRow, calibration_error, evaluate_predictions
from crossgraft.metrics.calibration_error import NUM_BINS
from crossgraft.metrics.record import CalibrationRecord, ConfusionRecord, MetricRecord, ReliabilityBin, RocRecord, ThresholdRecord
from crossgraft.models.classifier import Classifier
from crossgraft.tasks import DEFAULT_THRESHOLD, Decisions, Probabilities, Task, Thresholds, task_of
from crossgraft.tune.engine.cached_features import in_batches_that_fit
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.logits import BATCH_SIZE, logits_of_batches
from crossgraft.tune.measuring.thresholds import Temperature, fit_temperature, fit_thresholds, threshold_values
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.tune.record import MistakeRecord, MistakesRecord
from crossgraft.types import ClassIndices, Groups, Targets

_MOST_POINTS = 200
UNSEEN_DOMAINS = "unseen domains"
"""Part of a metric: images of every domain, each looked at by the model that never saw that domain."""


def confusion_record(
    decisions: ClassIndices, targets: ClassIndices, class_names: Sequence[str], *, split: str
) -> ConfusionRecord:
    """Counts of true class (rows) and decided class (columns)."""
    counts = np.zeros((len(class_names), len(class_names)), dtype=np.int64)
    np.add.at(counts, (targets, decisions), 1)
    return ConfusionRecord(class_names=list(class_names), counts=counts.tolist(), split=split)


def reliability_bins(probabilities: Probabilities, targets: Targets, groups: Groups | None = None) -> list[ReliabilityBin]:
    """The 15 bins that the calibration error is computed from; with labels, all labels together."""
    stated = task_of(targets).confidences(probabilities, targets)
    confidence, right = (np.column_stack(columns).ravel() for columns in zip(*stated, strict=True))
    units = np.arange(len(targets)) if groups is None else np.unique(groups, return_inverse=True)[1]
    units, are_alone = np.repeat(units, len(stated)), groups is None and len(stated) == 1
    edges = np.linspace(0, 1, NUM_BINS + 1)
    places = np.clip(np.searchsorted(edges, confidence, side="left") - 1, 0, NUM_BINS - 1)
    return [
        ReliabilityBin(
            low=float(edges[number]),
            high=float(edges[number + 1]),
            num_images=int(here.sum()),
            mean_probability=float(confidence[here].mean()) if here.any() else None,
            share_right=float(right[here].mean()) if here.any() else None,
            variance_of_groups=None if are_alone else _variance_of_groups(confidence[here], right[here], units[here]),
        )
        for number in range(NUM_BINS)
        for here in [places == number]
    ]


def _variance_of_groups(
    confidence: Float[np.ndarray, " n"], right: Bool[np.ndarray, " n"], units: Int[np.ndarray, " n"]
) -> float:
    """Σ over groups of (Σ confidence − right)², at most what it is where each group is all right or all wrong."""
    if not len(units):
        return 0.0
    squares = np.square(np.bincount(units, weights=confidence - right)).sum()
    most = np.square(np.bincount(units)).sum() * confidence.mean() * (1 - confidence.mean())
    return float(min(squares, most))


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
    detected = np.cumsum(truth[order])[last_of_level] / truth.sum()
    alarms = np.cumsum(~truth[order])[last_of_level] / (~truth).sum()
    if len(detected) > _MOST_POINTS - 1:
        kept = np.unique(np.linspace(0, len(detected) - 1, _MOST_POINTS - 1).round().astype(int))
        detected, alarms = detected[kept], alarms[kept]
    return [0.0, *alarms.tolist()], [0.0, *detected.tolist()]


MOST_SHOWN = 12


def find_mistakes(
    probabilities: Probabilities,
    decisions: Decisions,
    targets: Targets,
    *,
    task: Task,
    class_names: Sequence[str],
    rows: np.ndarray,
) -> MistakesRecord:
    """Images that were answered wrongly, the surest answer first; of equally sure ones in the order of the data.

    Args:
        probabilities: (n, C), after temperature.
        decisions: In the form of targets.
        targets: What is true.
        task: Kind of the targets.
        class_names: Names of the classes or labels.
        rows: Place of each image in the data.
    """
    wrong = task.wrong_answers(probabilities, decisions, targets)
    surest = np.where(np.isnan(wrong), -np.inf, wrong).max(axis=1)
    is_wrong = np.isfinite(surest)
    order = np.lexsort((rows, -surest))[: min(MOST_SHOWN, int(is_wrong.sum()))]
    decided = task.marks(decisions, len(class_names))
    records: list[MistakeRecord] = []
    for place in order.tolist():
        column = int(np.nanargmax(wrong[place]))
        records.append(
            MistakeRecord(
                row=int(rows[place]) + 1,
                target="; ".join(task.names_of(targets[place], class_names)) or NO_LABEL,
                answer=class_names[column] if decided[place, column] else f"no {class_names[column]}",
                probability=float(surest[place]),
            )
        )
    return MistakesRecord(num_wrong=int(is_wrong.sum()), num_images=len(rows), most_certain=records)


def metric_records(rows: Iterable[MetricRow], *, split: str) -> list[MetricRecord]:
    """The same numbers with titles, directions and the rows that they were measured on."""
    return [
        MetricRecord(
            metric=row.metric,
            title=row.facts.title,
            value=row.value,
            low=row.low,
            high=row.high,
            reason=row.reason,
            no_interval_reason=row.note if row.value is not None and row.low is None else None,
            split=split,
            num_images=row.num_images,
            num_groups=row.num_groups,
            class_name=row.class_name,
            attribute=row.attribute,
            attribute_value=row.attribute_value,
            higher_is_better=row.facts.higher_is_better,
            explanation=" ".join(text for text in (row.facts.explanation, row.note) if text),
        )
        for row in rows
    ]


Logits = Float[np.ndarray, "_ num_classes"]


@dataclass(frozen=True, eq=False)
class FoldPredictions:
    """What one model says, and what was fitted on its validation rows.

    Attributes:
        parts: Rows of the fold.
        val_logits: Logits of the validation rows; empty without any.
        test_logits: Logits of the test rows, before the temperature.
        temperature: None without validation rows.
        thresholds: Threshold of the last of two classes, or of each label; empty otherwise, or without validation rows.
        seen_logits: Logits of the rows of seen domains that are only measured; None where no domain is left out.
    """

    parts: FoldRows
    val_logits: Logits
    test_logits: Logits
    temperature: Temperature | None
    thresholds: list[ThresholdRecord]
    seen_logits: Logits | None = None

    def test_probabilities(self, task: Task, *, calibrated: bool = True) -> Float[np.ndarray, "num_rows num_classes"]:
        """Probabilities of the test rows."""
        return self._probabilities(self.test_logits, task, calibrated=calibrated)

    def decisions(self, task: Task) -> np.ndarray:
        """On the test rows, with the thresholds of this fold."""
        return self._decide(self.test_probabilities(task), task)

    def on_val(self, task: Task) -> tuple[Float[np.ndarray, "num_rows num_classes"], np.ndarray]:
        """Probabilities of the validation rows, and decisions on them, which temperature and thresholds were fitted to."""
        probabilities = self._probabilities(self.val_logits, task)
        return probabilities, self._decide(probabilities, task)

    def answers(self, task: Task) -> tuple[np.ndarray, np.ndarray]:
        """Rows of test and seen, and what the primary metric is computed from: decisions, or for an AUC probabilities."""
        of_each = [self.test_logits, *([] if self.seen_logits is None else [self.seen_logits])]
        probabilities = self._probabilities(np.concatenate(of_each), task)
        rows = np.concatenate([self.parts.test, self.parts.seen])
        return rows, probabilities if task.primary_metric == "auc" else self._decide(probabilities, task)

    def _probabilities(self, logits: Logits, task: Task, *, calibrated: bool = True) -> Float[np.ndarray, "_ num_classes"]:
        temperature = self.temperature.value if calibrated and self.temperature is not None else None
        return task.probabilities(logits, temperature)

    def _decide(self, probabilities: np.ndarray, task: Task) -> np.ndarray:
        return task.decide(probabilities, threshold_values(self.thresholds) if self.thresholds else None)


def logits_of(classifier: Classifier, images: TrainingImages, *, device: str) -> Logits:
    """Logits of all rows in order, in eval mode, in the batches in which ``predict`` sees images."""
    classifier.eval().to(device)

    def look(size: int) -> Logits:
        batches = evaluation_batches(images, batch_size=size, device=device)
        return collect(logits_of_batches(classifier, batches)).numpy()

    return in_batches_that_fit(look, BATCH_SIZE)


def calibrate(
    classifier: Classifier, dataset: Dataset, parts: FoldRows, *, task: Task, device: str, num_threads: int
) -> tuple[Logits, Temperature | None]:
    """Logits of the validation rows, and the temperature that fits them; none and None without such rows.

    The arguments are those of ``predict_fold``.
    """
    if not parts.val.size:
        return np.zeros((0, classifier.num_outputs), dtype=np.float32), None
    images = TrainingImages(dataset.take(parts.val), classifier.preprocessing, num_threads=num_threads)
    logits = logits_of(classifier, images, device=device)
    return logits, fit_temperature(logits, dataset.targets[parts.val], task=task)


def predict_fold(
    classifier: Classifier,
    dataset: Dataset,
    parts: FoldRows,
    *,
    task: Task,
    threshold_rule: str | None,
    device: str,
    num_threads: int,
) -> FoldPredictions:
    """Fit temperature and thresholds on the validation rows, then look at the test rows for the first time.

    ``threshold_rule`` is as ``parse_threshold_rule`` reads it, Youden where it is None.
    """
    val_logits, temperature = calibrate(classifier, dataset, parts, task=task, device=device, num_threads=num_threads)
    thresholds = []
    if temperature is not None and task.threshold_columns(len(dataset.class_names)):
        thresholds = fit_thresholds(
            task.probabilities(val_logits, temperature.value),
            dataset.targets[parts.val],
            task=task,
            class_names=dataset.class_names,
            rule=threshold_rule or "youden",
        )

    def look(rows: np.ndarray) -> Logits:
        images = TrainingImages(dataset.take(rows), classifier.preprocessing, num_threads=num_threads)
        return logits_of(classifier, images, device=device)

    seen_logits = look(parts.seen) if parts.seen.size else None
    return FoldPredictions(parts, val_logits, look(parts.test), temperature, thresholds, seen_logits)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that was measured on unseen rows, as records.

    Attributes:
        metrics: Over all classes, of each class, of subgroups; first those of the unseen rows, then those of val.
        split: ``test``, ``out of fold``, or ``unseen domains`` where every domain was left out in turn.
        confusion: None with several labels per image.
        mistakes: Wrong answers that the model is surest of.
        roc: One curve a class.
        calibration: None without a temperature.
        calibration_reason: Reason why there is no calibration.
        thresholds: Thresholds in force.
    """

    metrics: list[MetricRecord]
    split: str
    confusion: ConfusionRecord | None
    mistakes: MistakesRecord
    roc: list[RocRecord]
    calibration: CalibrationRecord | None
    calibration_reason: str | None
    thresholds: list[ThresholdRecord]


def evaluate(
    folds: Sequence[FoldPredictions], dataset: Dataset, *, task: Task, attributes: dict[str, np.ndarray], is_folded: bool
) -> Evaluation:
    """Measure the predictions of all folds together; every row was predicted by the model that had not seen it.

    With folds each row has temperature and threshold of its own fold: those of another fold may be fitted to this very row.
    ``attributes`` are further columns, one value per row of ``dataset``.
    """
    several = "out of fold" if folds[0].parts.domain is None else UNSEEN_DOMAINS
    split = several if is_folded else "test"
    rows = np.concatenate([fold.parts.test for fold in folds])
    probabilities = np.concatenate([fold.test_probabilities(task) for fold in folds])
    raw = np.concatenate([fold.test_probabilities(task, calibrated=False) for fold in folds])
    targets = dataset.targets[rows]
    groups = None if dataset.groups is None else dataset.groups[rows]
    limits = _limits(folds)
    measured = evaluate_predictions(
        probabilities,
        targets,
        task=task,
        class_names=dataset.class_names,
        groups=groups,
        attributes={name: values[rows] for name, values in attributes.items()},
        thresholds=limits,
    )
    metrics = [*metric_records(measured, split=split), *([] if is_folded else _of_val(folds[0], dataset, task))]
    decided = task.decide(probabilities, limits)
    confusion = confusion_record(decided, targets, dataset.class_names, split=split) if task.partitions else None
    mistakes = find_mistakes(probabilities, decided, targets, task=task, class_names=dataset.class_names, rows=rows)
    calibration, reason = _calibration(folds, raw, probabilities, targets, groups)
    return Evaluation(
        metrics=metrics,
        split=split,
        confusion=confusion,
        mistakes=mistakes,
        roc=roc_records(probabilities, targets, task=task, class_names=dataset.class_names, thresholds=limits, split=split),
        calibration=calibration,
        calibration_reason=reason,
        thresholds=_threshold_records(folds),
    )


def evaluate_alone(fold: FoldPredictions, dataset: Dataset, *, task: Task) -> Evaluation:
    """One fold, with its own temperature and thresholds."""
    return evaluate([fold], dataset, task=task, attributes={}, is_folded=False)


def _of_val(fold: FoldPredictions, dataset: Dataset, task: Task) -> list[MetricRecord]:
    """The same measures on the rows that picked the model, which flatter it."""
    if not fold.parts.val.size:
        return []
    temperature = None if fold.temperature is None else fold.temperature.value
    measured = evaluate_predictions(
        task.probabilities(fold.val_logits, temperature),
        dataset.targets[fold.parts.val],
        task=task,
        class_names=dataset.class_names,
        groups=None if dataset.groups is None else dataset.groups[fold.parts.val],
        thresholds=threshold_values(fold.thresholds) if fold.thresholds else None,
    )
    return [row for row in metric_records(measured, split="val") if row.class_name is None]


def _limits(folds: Sequence[FoldPredictions]) -> Float[np.ndarray, "num_rows num_labels"] | None:
    """Thresholds in force at each test row: those of its own fold."""
    if not all(fold.thresholds for fold in folds):
        return None
    return np.concatenate([np.tile(threshold_values(fold.thresholds), (len(fold.parts.test), 1)) for fold in folds])


def _calibration(
    folds: Sequence[FoldPredictions], raw: np.ndarray, calibrated: np.ndarray, targets: np.ndarray, groups: Groups | None
) -> tuple[CalibrationRecord | None, str | None]:
    fitted = [fold.temperature for fold in folds if fold.temperature is not None]
    if not fitted:
        return None, "There are no validation rows to fit a temperature to."
    values = [temperature.value for temperature in fitted if temperature.value is not None]
    reasons = [temperature.reason for temperature in fitted if temperature.reason is not None]
    before, after = _error(raw, targets), _error(calibrated, targets)
    bins: list[list[ReliabilityBin]] = [reliability_bins(each, targets, groups) for each in (raw, calibrated)]
    record = CalibrationRecord(
        temperature=float(np.median(values)) if values else None,
        reason=reasons[0] if reasons and not values else None,
        fitted_on="the validation rows" if len(folds) == 1 else f"the validation rows of each {_one_of_several(folds)}",
        num_images=sum(temperature.num_images for temperature in fitted),
        error_raw=before,
        error_calibrated=after,
        bins_raw=bins[0],
        bins_calibrated=bins[1],
        temperatures=values if len(folds) > 1 else [],
    )
    return record, None


def _one_of_several(folds: Sequence[FoldPredictions]) -> str:
    return "fold" if folds[0].parts.domain is None else "training"


def _error(probabilities: np.ndarray, targets: np.ndarray) -> float | None:
    try:
        return calibration_error(probabilities, targets).value
    except NotApplicable:
        return None


def _threshold_records(folds: Sequence[FoldPredictions]) -> list[ThresholdRecord]:
    """Thresholds of one model as they were fitted; with folds the medians."""
    fitted = [fold.thresholds for fold in folds if fold.thresholds]
    if not fitted:
        return []
    if len(fitted) == 1:
        return fitted[0]
    one = _one_of_several(folds)
    return [
        ThresholdRecord(
            class_name=of_label[0].class_name,
            threshold=float(np.median([DEFAULT_THRESHOLD if t.threshold is None else t.threshold for t in of_label])),
            rule=of_label[0].rule,
            fitted_on=f"the validation rows of each of {len(fitted)} {one}s; the median, each {one} uses its own",
            num_positive=sum(each.num_positive or 0 for each in of_label),
        )
        for of_label in zip(*fitted, strict=True)
    ]
