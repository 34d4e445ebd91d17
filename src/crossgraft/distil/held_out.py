"""What teacher and student are worth on images that neither has learned from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool
from torch import nn

from crossgraft.data import Dataset
from crossgraft.features import extract_features
from crossgraft.metrics import evaluate_predictions
from crossgraft.metrics.record import MetricRecord
from crossgraft.models import Backbone
from crossgraft.progress import Reporter
from crossgraft.tasks import recorded_task
from crossgraft.tune.logits import compute_logits
from crossgraft.tune.measuring.metric_records import metric_records
from crossgraft.tune.saving.inference import answer, thresholds_of
from crossgraft.tune.saving.saved_model import SavedModel


def seen_elsewhere(test: Dataset, others: Sequence[Dataset]) -> Bool[np.ndarray, " num_images"]:
    """Which images the student has learned from as those of another domain, or knows the patient of.

    Patients are compared where both data sets have them in a column of the same name.

    Args:
        test: Test images of one domain.
        others: Training images of the others.
    """
    digests = {digest for other in others for digest in other.image_digests}
    seen = np.array([digest in digests for digest in test.image_digests])
    for other in others:
        if test.groups is not None and other.groups is not None and test.group_column == other.group_column:
            seen |= np.isin(test.groups, other.groups)
    return seen


def metrics_of_teacher(teacher: SavedModel, images: Dataset, reporter: Reporter) -> list[MetricRecord]:
    """Metrics over all classes, at the temperature and the thresholds that are stored with the model."""
    probabilities = answer(teacher.facts, compute_logits(teacher.classifier, images, reporter=reporter)).probabilities
    return _measured(probabilities, images, teacher, thresholds_of(teacher.facts))


def metrics_of_student(
    backbone: Backbone,
    head: nn.Linear,
    teacher: SavedModel,
    images: Dataset,
    reporter: Reporter,
    *,
    cache_dir: str | Path | None = None,
) -> list[MetricRecord]:
    """The same metrics of the student with the head of the teacher's domain; the most probable class is its answer."""
    features = extract_features(images, backbone, cache_dir=cache_dir, reporter=reporter).features
    weight, bias = (each.detach().cpu() for each in (head.weight, head.bias))
    rows = torch.from_numpy(np.array(features, dtype=np.float32))
    probabilities = (rows @ weight.T + bias).double().softmax(dim=1).numpy()
    return _measured(probabilities, images, teacher, None)


def _measured(
    probabilities: np.ndarray, images: Dataset, teacher: SavedModel, thresholds: Sequence[float] | None
) -> list[MetricRecord]:
    rows = evaluate_predictions(
        probabilities,
        images.targets,
        task=recorded_task(teacher.facts),
        class_names=teacher.facts.class_names,
        groups=images.groups,
        thresholds=thresholds,
    )
    return metric_records([row for row in rows if row.class_name is None], split="test")
