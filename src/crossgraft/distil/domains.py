"""What is distilled: domains with a teacher each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crossgraft.data import Dataset
from crossgraft.distil.options import DistillationSettings as DistillationSettings
from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.heads._linear_heads import check_count, check_number
from crossgraft.models.classifier import Classifier


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
        raise UsageError(
            f"Give at least two domains with names of their own (--names A,B); found {', '.join(names) or 'none'}."
        )
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
