"""What is distilled: domains with a teacher each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from crossgraft.data import Dataset
from crossgraft.data.transforms import prepare_batch
from crossgraft.distil.options import DistillationSettings as DistillationSettings
from crossgraft.distil.record import DistilledStepsRecord
from crossgraft.errors import DataError, UsageError
from crossgraft.features import extract_features
from crossgraft.fewshot.heads._head import check_count, check_number
from crossgraft.metrics import evaluate_predictions
from crossgraft.metrics.record import MetricRecord
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier, ClassifierOutput
from crossgraft.models.taps import modes_kept
from crossgraft.progress import Reporter
from crossgraft.records.base import Reference
from crossgraft.seeding import torch_generator
from crossgraft.tasks import recorded_task
from crossgraft.tune.measuring.evaluation import metric_records
from crossgraft.tune.measuring.logits import compute_logits
from crossgraft.tune.saving.saved_model import SavedModel, answer, thresholds_of

if TYPE_CHECKING:
    import pandas as pd


def seen_elsewhere(test: Dataset, others: Sequence[Dataset]) -> Bool[np.ndarray, " num_images"]:
    """Which images the student has learned from as those of another domain, or knows the patient of.

    Patients are compared where both data sets have them in a column of the same name.
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


class Domain(NamedTuple):
    """What one network knows.

    Attributes:
        name: Name of the domain.
        dataset: Labelled images that the student learns on; their classes are those of the teacher.
        teacher: Network that was trained on this domain, with its head; it is not changed.
    """

    name: str
    dataset: Dataset
    teacher: Classifier


class DistilledStep(NamedTuple):
    """The terms of one step, means over the batch, not weighted.

    Attributes:
        step: From 1.
        cross_entropy: Domain → cross-entropy of its labels.
        dissimilarity: Domain → 1 − CKA of the mapped features and the teacher's.
        divergence: Domain → KL divergence of the logits at temperature T, without T².
    """

    step: int
    cross_entropy: dict[str, float]
    dissimilarity: dict[str, float]
    divergence: dict[str, float]


def check(domains: Sequence[Domain], settings: DistillationSettings) -> None:
    """Refuse what cannot be distilled.

    Raises:
        UsageError: There are fewer than two domains, two of one name, or a setting is out of its range.
        DataError: A domain has fewer images than a batch, several labels per image, or other classes than its teacher.
    """
    names = [domain.name for domain in domains]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(f"Give at least two domains with names of their own (--names A,B); found {', '.join(names) or 'none'}.")
    for option in ("steps", "batch_size", "checkpoint_every"):
        check_count(option, "a distillation", getattr(settings, option))
        if getattr(settings, option) < (4 if option == "batch_size" else 1):
            raise UsageError(f"{option} of a distillation is too small: {getattr(settings, option)}.")
    for option in ("learning_rate", "temperature", "adapter_learning_rate"):
        check_number(option, "a distillation", getattr(settings, option), least=0, above=True)
    for option in ("weight_decay", "adapter_weight_decay", "largest_weight"):
        check_number(option, "a distillation", getattr(settings, option), least=0)
    for domain in domains:
        if not domain.dataset.task.partitions:
            raise DataError(
                f"The images of the domain {domain.name} may have several labels, and URL learns one class per image."
            )
        if len(domain.dataset) < settings.batch_size:
            raise DataError(
                f"The domain {domain.name} has {len(domain.dataset)} images, fewer than a batch of {settings.batch_size}. "
                "Lower --batch-size, or bring more images."
            )
        if len(domain.dataset.class_names) != domain.teacher.num_outputs:
            raise DataError(
                f"The domain {domain.name} has {len(domain.dataset.class_names)} classes, and its teacher "
                f"{domain.teacher.num_outputs}. Give the images that it was trained on."
            )


MOST_ROWS = 200
"""Points of a curve on the page."""

REFERENCE = Reference(
    key="URL",
    text="Li, Liu and Bilen, Universal Representation Learning from Multiple Domains for Few-shot Classification, ICCV 2021.",
)
_TERMS = ("cross_entropy", "dissimilarity", "divergence")


def summarise(history: Sequence[DistilledStep], *, most_rows: int = MOST_ROWS) -> list[DistilledStepsRecord]:
    """Means over windows of equally many steps; the last one may be shorter."""
    width = max(1, math.ceil(len(history) / most_rows))
    windows = [history[first : first + width] for first in range(0, len(history), width)]
    return [
        DistilledStepsRecord(
            last_step=steps[-1].step,
            **{term: np.mean([list(getattr(step, term).values()) for step in steps], axis=0).tolist() for term in _TERMS},
        )
        for steps in windows
    ]


def history_frame(history: Sequence[DistilledStep]) -> pd.DataFrame:
    """One row per step and domain."""
    import pandas as pd

    rows = [
        {"step": step.step, "domain": domain, **{term: getattr(step, term)[domain] for term in _TERMS}}
        for step in history
        for domain in step.cross_entropy
    ]
    return pd.DataFrame(rows, columns=["step", "domain", *_TERMS])


_AT_ONCE = 64


class TeacherAnswers(NamedTuple):
    """What a teacher says of its images."""

    features: Float[Tensor, "images width"]
    logits: Float[Tensor, "images classes"]
    targets: Int[Tensor, " images"]


def new_head(width: int, outputs: int, seed: int, domain: str) -> nn.Linear:
    """A head as of a fine-tuning: drawn with a standard deviation of 0.02, its bias zero."""
    head = cast("nn.Linear", nn.utils.skip_init(nn.Linear, width, outputs))
    generator = torch_generator(seed, "universal head", domain)
    with torch.no_grad():
        head.weight.copy_(0.02 * torch.randn(head.weight.shape, generator=generator))
        head.bias.zero_()
    return head


def new_map(width: int, teacher_width: int) -> nn.Linear:
    """A_t, without bias; the identity at first, as far as it is square."""
    adapter = cast("nn.Linear", nn.utils.skip_init(nn.Linear, width, teacher_width, bias=False))
    with torch.no_grad():
        adapter.weight.copy_(torch.eye(teacher_width, width))
    return adapter


@torch.no_grad()
def answers_of(domain: Domain, device: torch.device) -> TeacherAnswers:
    """Features and logits of all images, in eval mode; the teacher keeps its modes."""
    teacher, dataset = domain.teacher, domain.dataset
    outputs: list[ClassifierOutput] = []
    with modes_kept(teacher):
        teacher.eval()
        for first in range(0, len(dataset), _AT_ONCE):
            rows = range(first, min(first + _AT_ONCE, len(dataset)))
            images = prepare_batch([dataset.read(row) for row in rows], teacher.preprocessing)
            outputs.append(teacher.features_and_logits(images.to(teacher.head.weight)))
    features, logits = (torch.cat(parts).float().to(device) for parts in zip(*outputs, strict=True))
    return TeacherAnswers(features, logits, torch.from_numpy(np.asarray(dataset.targets)).to(device))
