"""What the validation rows say after each epoch: the numbers that pick epoch and grid point."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import DataError, NotApplicable, UnknownNameError, UsageError
from crossgraft.losses import Loss, activate
from crossgraft.metrics import MetricValue, auc, average_precision, balanced_accuracy, f1
from crossgraft.models.classifier import Classifier
from crossgraft.similarity import both_linear_cka
from crossgraft.tasks import Task, task_of
from crossgraft.tune.engine.cached_features import EvaluationLogits
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.drift import PretrainedFeatures
from crossgraft.types import Targets

SELECTION_METRICS = ("loss", "accuracy", "balanced_accuracy", "auc", "average_precision", "f1")
"""What ``--select-by`` may name."""
SIMILARITY = ("cka", "cka_debiased")
"""How alike the features are to those of the pretrained network."""
ADAPTED = ("cka_adapted", "cka_debiased_adapted")
"""The same, to its weights with BatchNorm statistics of the training images."""


def choose_rule(select_by: str | None, folds: Sequence[Targets], num_classes: int, *, flag: str = "--select-by") -> SelectionRule:
    """The rule that picks the model, the same in every fold.

    Left open it is the AUC, which needs no threshold and is rarely equal for two epochs; the loss where a class has no
    validation row in some fold (or a label no row without it), because an AUC of it is not defined; the last epoch without
    validation rows.

    Args:
        select_by: A name of ``SELECTION_METRICS``, or None.
        folds: Targets of the validation rows, of each fold; without folds of the only split. May be empty.
        num_classes: Classes or labels.
        flag: Flag of ``select_by``, for messages.

    Raises:
        UnknownNameError: With the nearest names.
        UsageError: What is asked for has no meaning on the validation rows, so that no epoch would be better than the first.
    """
    if select_by is not None and select_by not in SELECTION_METRICS:
        raise UnknownNameError("metric to select by", select_by, SELECTION_METRICS)
    if any(len(targets) == 0 for targets in folds):
        return SelectionRule(keep="last")
    if select_by is None:
        select_by = "auc" if all(_has_both_sides(targets, num_classes) for targets in folds) else "loss"
    for number, targets in enumerate(folds if select_by != "loss" else ()):
        if math.isnan(_metrics_of(torch.zeros(len(targets), num_classes), targets, task_of(targets, num_classes))[select_by]):
            where = f" of training {number + 1} of {len(folds)}" if len(folds) > 1 else ""
            raise UsageError(
                f"{flag} {select_by} has no meaning on the {len(targets)} validation rows{where}: a class is missing there. "
                f"Use {flag} loss, or give more validation rows (--val-fraction)."
            )
    return SelectionRule(select_by, "min" if select_by == "loss" else "max")


def _has_both_sides(targets: Targets, num_classes: int) -> bool:
    """Whether every class or label has rows with it and rows without it."""
    positives = task_of(targets).marks(targets, num_classes).sum(axis=0)
    return bool(((positives > 0) & (positives < len(targets))).all())


@dataclass(eq=False)
class SelectionMetrics:
    """Metrics on the validation rows, for the trainer. May be sent to another process.

    Attributes:
        images: Images of the validation rows; None without any.
        targets: (n,) classes or (n, C) of 0 and 1.
        matrix: (n, C) of floats, for the loss.
        loss: As in training.
        task: What the targets are.
        batch_size: Images at a time.
        device: Where the network is.
        pretrained: What features are compared with after each epoch; None: they are not.
        adapted: The same network with BatchNorm statistics of the training images.
    """

    images: TrainingImages | None
    targets: Targets
    matrix: Float[Tensor, "num_samples num_classes"]
    loss: Loss
    task: Task
    batch_size: int
    device: str
    pretrained: PretrainedFeatures | None = None
    adapted: PretrainedFeatures | None = None

    def __post_init__(self) -> None:
        self._logits = None
        if self.images is not None:
            self._logits = EvaluationLogits(self.images, batch_size=self.batch_size, device=self.device)

    def keep_features(self, keep: bool) -> None:
        """The trainer says that features do not change from now on (or that they do)."""
        if self._logits is not None:
            self._logits.keep_features(keep)

    def __call__(self, classifier: Classifier) -> dict[str, float]:
        """Every metric that can pick a model, and the similarity to the pretrained network; nan where one has no meaning."""
        if self._logits is None:
            return dict.fromkeys(SELECTION_METRICS, math.nan)
        features, logits = self._logits.features_and_logits(classifier)
        loss = self.loss(logits.double(), self.matrix.double()).mean()
        return {"loss": float(loss), **_metrics_of(logits, self.targets, self.task), **self._similarity(features)}

    def _similarity(self, features: Float[Tensor, "num_samples num_features"]) -> dict[str, float]:
        """From the features of the evaluation itself, so that it costs no further pass through the network."""
        values: dict[str, float] = {}
        for names, kept in ((SIMILARITY, self.pretrained), (ADAPTED, self.adapted)):
            before = None if kept is None else kept()
            if before is None:
                continue
            try:
                values |= zip(names, both_linear_cka(before, features), strict=True)
            except (NotApplicable, DataError):  # too few rows, or features that have collapsed or overflowed
                values |= dict.fromkeys(names, math.nan)
        return values


def _metrics_of(logits: Tensor, targets: Targets, task: Task) -> dict[str, float]:
    probabilities = activate(logits.detach().cpu().double(), task).numpy()
    if not np.isfinite(probabilities).all():
        return dict.fromkeys(SELECTION_METRICS[1:], math.nan)
    decided, of_question = task.decide(probabilities), task.asked_scores(probabilities)
    return {
        "accuracy": float((decided == targets).mean()),
        "balanced_accuracy": _value(lambda: balanced_accuracy(decided, targets)),
        "auc": _value(lambda: auc(of_question, targets)),
        "average_precision": _value(lambda: average_precision(of_question, targets)),
        "f1": _value(lambda: f1(task.asked_decisions(decided), task.asked_decisions(targets))),
    }


def _value(compute: Callable[[], MetricValue]) -> float:
    try:
        return compute().value
    except NotApplicable:
        return math.nan
