"""Focal loss: what is already right counts less."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.nn.functional import log_softmax, logsigmoid

from crossgraft.conflicts import Situation
from crossgraft.errors import UsageError
from crossgraft.losses._loss import (
    Logits,
    LossTargets,
    PerImageLoss,
    TaskName,
    Weights,
    check_task,
    class_weights,
    parsed_weights,
    positive_weights,
    weight_tensor,
)
from crossgraft.tasks import task_named


@dataclass(frozen=True)
class Focal:
    """ℓ_i = −Σ_c w_c t_ic (1 − p_ic)^γ log p_ic; with several labels per image, both sides of every label.

    One class per image: p = softmax(logits). Several labels: p = σ(logits) and
    ℓ_i = −Σ_l [w_l t_il (1 − p_il)^γ log p_il + (1 − t_il) p_il^γ log(1 − p_il)], summed over labels. γ = 0 is
    cross-entropy. The mean over a batch is over images, not over weights. Focal loss trains probabilities that are too
    close to the middle; a fitted temperature puts that right.

    Args:
        gamma: γ ≥ 0.
        class_weights: ``balanced`` or one positive number per class; with several labels per image it is the weight of the
            images that have the label, ``balanced`` being images without / images with it. Lin's α is w = α / (1 − α)
            up to a factor of the whole loss.
        multi_label: Whether the loss has its form for several labels; set by ``resolve``.

    Raises:
        UsageError: γ is negative or a weight is not a positive number.
    """

    name: ClassVar[str] = "focal"
    title: ClassVar[str] = "Focal loss"
    citation: ClassVar[str] = "Lin, Goyal, Girshick, He and Dollár, Focal Loss for Dense Object Detection, ICCV 2017, eq. 5"
    tasks: ClassVar[tuple[TaskName, ...]] = ("multi-class", "binary", "multi-label")

    gamma: float = 2.0
    class_weights: Weights = None
    multi_label: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.gamma < float("inf"):
            raise UsageError(f"gamma of the focal loss is {self.gamma}; it must be 0 or larger.")
        object.__setattr__(self, "class_weights", parsed_weights(self.class_weights, self.name))

    def remarks(self, situation: Situation) -> list[str]:
        """Mixing and focusing dampen each other."""
        if not situation.mixes:
            return []
        return [
            "Focal loss weighs images by how wrong they are; mixed images are always somewhat wrong, so the two dampen each "
            "other."
        ]

    def resolve(self, targets: LossTargets, *, task: TaskName) -> Focal:
        """With form and balanced weights filled in; errors as in ``Loss.resolve``."""
        check_task(self, task)
        several = task_named(task).activation == "sigmoid"
        count = positive_weights if several else class_weights
        weights = count(self.class_weights, targets, self.name)
        return dataclasses.replace(self, class_weights=weights, multi_label=several)

    def __call__(self, logits: Logits, targets: LossTargets) -> PerImageLoss:
        """Loss of each image, ≥ 0."""
        targets = targets.to(logits.dtype)
        weights = weight_tensor(self.class_weights, logits, self.name)
        present = targets if weights is None else targets * weights
        if not self.multi_label:
            log_p = log_softmax(logits, dim=1)
            # Where p rounds to 1 the slope of (1 − p)^γ is infinite for γ < 1; the floor makes it 0 · finite = 0.
            wrong = (-torch.expm1(log_p)).clamp_min(torch.finfo(logits.dtype).tiny)
            return -(present * wrong.pow(self.gamma) * log_p).sum(dim=1)
        log_p, log_not_p = logsigmoid(logits), logsigmoid(-logits)
        with_label = present * torch.exp(self.gamma * log_not_p) * log_p
        without_label = (1 - targets) * torch.exp(self.gamma * log_p) * log_not_p
        return -(with_label + without_label).sum(dim=1)
