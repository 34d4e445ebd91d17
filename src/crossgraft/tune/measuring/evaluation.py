"""What the picked models predict for held-out images; all folds together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from crossgraft.data import Dataset
from crossgraft.errors import NotApplicable
from crossgraft.features.passes import collect
from crossgraft.metrics import calibration_error, evaluate_predictions
from crossgraft.metrics.record import (
    CalibrationRecord,
    ConfusionRecord,
    MetricRecord,
    ReliabilityBin,
    RocRecord,
    ThresholdRecord,
)
from crossgraft.models.classifier import Classifier
from crossgraft.tasks import DEFAULT_THRESHOLD, Task
from crossgraft.tune.feed.batches import evaluation_batches
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.logits import BATCH_SIZE, logits_of_batches
from crossgraft.tune.measuring.calibration import Temperature, fit_temperature
from crossgraft.tune.measuring.curves import confusion_record, reliability_bins, roc_records
from crossgraft.tune.measuring.metric_records import metric_records
from crossgraft.tune.measuring.mistakes import find_mistakes
from crossgraft.tune.measuring.thresholds import Threshold, fit_thresholds, threshold_values
from crossgraft.tune.mistakes_record import MistakesRecord
from crossgraft.tune.parts import FoldRows

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
    """

    parts: FoldRows
    val_logits: Logits
    test_logits: Logits
    temperature: Temperature | None
    thresholds: list[Threshold]

    def test_probabilities(self, task: Task, *, calibrated: bool = True) -> Float[np.ndarray, "num_rows num_classes"]:
        """Probabilities of the test rows."""
        temperature = self.temperature.value if calibrated and self.temperature is not None else None
        return task.probabilities(self.test_logits, temperature)

    def decisions(self, task: Task) -> np.ndarray:
        """On the test rows, with the thresholds of this fold."""
        limits = threshold_values(self.thresholds) if self.thresholds else None
        return task.decide(self.test_probabilities(task), limits)


def logits_of(classifier: Classifier, images: TrainingImages, *, device: str) -> Logits:
    """Logits of all rows in order, in eval mode, in the batches in which ``predict`` sees images."""
    classifier.eval().to(device)
    batches = evaluation_batches(images, batch_size=BATCH_SIZE, device=device)
    return collect(logits_of_batches(classifier, batches)).numpy()


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
            groups=None if dataset.groups is None else dataset.groups[parts.val],
        )
    images = TrainingImages(dataset.take(parts.test), classifier.preprocessing, num_threads=num_threads)
    test_logits = logits_of(classifier, images, device=device)
    return FoldPredictions(parts, val_logits, test_logits, temperature, thresholds)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Everything that was measured on unseen rows, as records.

    Attributes:
        metrics: Over all classes, of each class, of subgroups; first those of the unseen rows, then those of val.
        split: ``test`` or ``out of fold``.
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
    folds: Sequence[FoldPredictions],
    dataset: Dataset,
    *,
    task: Task,
    attributes: dict[str, np.ndarray],
    is_folded: bool,
) -> Evaluation:
    """Measure the predictions of all folds together; every row was predicted by the model that had not seen it.

    With folds each row has temperature and threshold of its own fold: those of another fold may be fitted to this very row.
    ``attributes`` are further columns, one value per row of ``dataset``.
    """
    split = "out of fold" if is_folded else "test"
    rows = np.concatenate([fold.parts.test for fold in folds])
    probabilities = np.concatenate([fold.test_probabilities(task) for fold in folds])
    raw = np.concatenate([fold.test_probabilities(task, calibrated=False) for fold in folds])
    targets = dataset.targets[rows]
    limits = _limits(folds)
    measured = evaluate_predictions(
        probabilities,
        targets,
        task=task,
        class_names=dataset.class_names,
        groups=None if dataset.groups is None else dataset.groups[rows],
        attributes={name: values[rows] for name, values in attributes.items()},
        thresholds=limits,
    )
    metrics = [*metric_records(measured, split=split), *([] if is_folded else _of_val(folds[0], dataset, task))]
    decided = task.decide(probabilities, limits)
    confusion = confusion_record(decided, targets, dataset.class_names, split=split) if task.partitions else None
    mistakes = find_mistakes(probabilities, decided, targets, task=task, class_names=dataset.class_names, rows=rows)
    calibration, reason = _calibration(folds, raw, probabilities, targets)
    return Evaluation(
        metrics=metrics,
        split=split,
        confusion=confusion,
        mistakes=mistakes,
        roc=roc_records(
            probabilities, targets, task=task, class_names=dataset.class_names, thresholds=limits, split=split
        ),
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
    folds: Sequence[FoldPredictions], raw: np.ndarray, calibrated: np.ndarray, targets: np.ndarray
) -> tuple[CalibrationRecord | None, str | None]:
    fitted = [fold.temperature for fold in folds if fold.temperature is not None]
    if not fitted:
        return None, "There are no validation rows to fit a temperature to."
    values = [temperature.value for temperature in fitted if temperature.value is not None]
    reasons = [temperature.reason for temperature in fitted if temperature.reason is not None]
    before, after = _error(raw, targets), _error(calibrated, targets)
    bins: list[list[ReliabilityBin]] = [reliability_bins(each, targets) for each in (raw, calibrated)]
    record = CalibrationRecord(
        temperature=float(np.median(values)) if values else None,
        reason=reasons[0] if reasons and not values else None,
        fitted_on="the validation rows" if len(folds) == 1 else "the validation rows of each fold",
        num_images=sum(temperature.num_images for temperature in fitted),
        error_raw=before,
        error_calibrated=after,
        bins_raw=bins[0],
        bins_calibrated=bins[1],
        temperatures=values if len(folds) > 1 else [],
    )
    return record, None


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
        return [_threshold_record(threshold) for threshold in fitted[0]]
    return [
        ThresholdRecord(
            class_name=of_label[0].class_name,
            threshold=float(np.median([DEFAULT_THRESHOLD if t.value is None else t.value for t in of_label])),
            rule=of_label[0].rule,
            fitted_on=f"the validation rows of each of {len(fitted)} folds; the median, each fold uses its own",
            num_positive=sum(threshold.num_positive for threshold in of_label),
        )
        for of_label in zip(*fitted, strict=True)
    ]


def _threshold_record(threshold: Threshold) -> ThresholdRecord:
    return ThresholdRecord(
        class_name=threshold.class_name,
        threshold=threshold.value,
        rule=threshold.rule,
        fitted_on=f"{threshold.num_images} validation rows",
        num_positive=threshold.num_positive,
        sensitivity=None if threshold.sensitivity is None else threshold.sensitivity.value,
        specificity=None if threshold.specificity is None else threshold.specificity.value,
        reason=threshold.reason,
    )
