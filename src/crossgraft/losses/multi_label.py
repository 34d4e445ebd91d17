"""Binary cross-entropy of every label, summed over labels."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from torch.nn.functional import binary_cross_entropy_with_logits

from crossgraft.losses._loss import (
    Logits,
    LossTargets,
    PerImageLoss,
    TaskName,
    Weights,
    check_task,
    parsed_weights,
    positive_weights,
    weight_tensor,
)


@dataclass(frozen=True)
class MultiLabel:
    """ℓ_i = −Σ_l [w_l t_il log σ(z_il) + (1 − t_il) log(1 − σ(z_il))].

    Summed over labels and averaged over images, so that learning rates and strengths of regularisers mean the same for
    2 and for 20 labels; PyTorch's default also divides by the number of labels.

    Args:
        positive_weights: ``balanced`` is images without the label / images with it; or one positive number per label.
            Weights other than 1 teach probabilities that are too high; thresholds still fit, calibration suffers.

    Raises:
        UsageError: A weight is not a positive number.
    """

    name: ClassVar[str] = "multi_label"
    title: ClassVar[str] = "Binary cross-entropy summed over labels"
    citation: ClassVar[str] = "Good, Rational Decisions, J. R. Stat. Soc. B 14 (1952) 107, for every label"
    tasks: ClassVar[tuple[TaskName, ...]] = ("multi-label",)

    positive_weights: Weights = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "positive_weights", parsed_weights(self.positive_weights, self.name))

    def resolve(self, targets: LossTargets, *, task: TaskName) -> MultiLabel:
        """With balanced weights counted from the training targets; errors as in ``Loss.resolve``."""
        check_task(self, task)
        return dataclasses.replace(self, positive_weights=positive_weights(self.positive_weights, targets, self.name))

    def __call__(self, logits: Logits, targets: LossTargets) -> PerImageLoss:
        """Loss of each image, ≥ 0."""
        weights = weight_tensor(self.positive_weights, logits, self.name)
        by_label = binary_cross_entropy_with_logits(logits, targets.to(logits.dtype), pos_weight=weights, reduction="none")
        return by_label.sum(dim=1)
