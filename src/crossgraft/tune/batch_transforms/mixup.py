"""Mixup: train on blends of two images and of their targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.compute import sent
from crossgraft.errors import UsageError
from crossgraft.tune.batch_transforms._mixing import draw_partners, draw_share
from crossgraft.tune.image_protocols import BatchTransform, Images, SoftTargets


@dataclass(frozen=True)
class Mixup(BatchTransform):
    """x̃ = λ·x + (1 − λ)·x′ and ỹ = λ·y + (1 − λ)·y′ with λ from Beta(α, α).

    One λ a batch; the partner x′ comes from a permutation of the batch (the paper's own implementation, §2). With several
    labels per image, a label of one of the two has the weight of that image. A batch of one stays as it is.

    Cost: two passes over the batch.

    Attributes:
        alpha: α > 0; small values mostly keep one image. The paper uses 0.2 for ImageNet (§3.1), 1 for CIFAR-10 (§3.2).

    Raises:
        UsageError: α is not a positive number.
    """

    name: ClassVar[str] = "mixup"
    title: ClassVar[str] = "Mixup"
    citation: ClassVar[str] = "Zhang, Cissé, Dauphin and Lopez-Paz, mixup: Beyond Empirical Risk Minimization, ICLR 2018"
    mixes_images: ClassVar[bool] = True
    accepts_multi_label: ClassVar[bool] = True

    alpha: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.alpha < float("inf"):
            raise UsageError(f"mixup: alpha must be above 0, not {self.alpha}. Leave mixup out to mix nothing.")

    def __call__(self, images: Images, targets: SoftTargets, generator: torch.Generator) -> tuple[Images, SoftTargets]:
        """Blended images and targets; the inputs stay as they are."""
        share = draw_share(self.alpha, generator)
        partners = sent(draw_partners(len(images), generator), images.device)
        return images[partners].lerp_(images, share), targets[partners].lerp_(targets, share)
