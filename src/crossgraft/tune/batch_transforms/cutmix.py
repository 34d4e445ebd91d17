"""CutMix: paste a rectangle of another image, and of its target by area."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch

from crossgraft.compute import sent
from crossgraft.errors import UsageError
from crossgraft.tune.batch_transforms._mixing import draw_partners, draw_share
from crossgraft.tune.image_protocols import BatchTransform, Images, SoftTargets


@dataclass(frozen=True)
class CutMix(BatchTransform):
    """A box with √(1 − λ) of the height and width is taken from a partner, λ from Beta(α, α).

    One λ and one box a batch; the centre is drawn evenly over the image, the box is cut off at the border, and λ is then
    set to the share of pixels that stayed (Alg. 1). Targets: ỹ = λ·y + (1 − λ)·y′. With several labels per image, a label
    of one of the two has the weight of that image's area, whether or not its sign lies inside the box.

    Cost: one copy of the batch.

    Attributes:
        alpha: α > 0. The paper uses 1, which draws λ evenly.
        probability: Share of the batches that are mixed, in [0, 1]: 1 for ImageNet, 0.5 for CIFAR in the paper.

    Raises:
        UsageError: A value is out of its range.
    """

    name: ClassVar[str] = "cutmix"
    title: ClassVar[str] = "CutMix"
    citation: ClassVar[str] = (
        "Yun et al., CutMix: Regularization Strategy to Train Strong Classifiers with Localizable Features, ICCV 2019"
    )
    mixes_images: ClassVar[bool] = True
    accepts_multi_label: ClassVar[bool] = True

    alpha: float = 1.0
    probability: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.alpha < float("inf"):
            raise UsageError(f"cutmix: alpha must be above 0, not {self.alpha}. Leave cutmix out to mix nothing.")
        if not 0 <= self.probability <= 1:
            raise UsageError(f"cutmix: probability must be in [0, 1], not {self.probability}.")

    def __call__(self, images: Images, targets: SoftTargets, generator: torch.Generator) -> tuple[Images, SoftTargets]:
        """Images with a pasted box, and mixed targets; the inputs stay as they are."""
        if float(torch.rand((), generator=generator)) >= self.probability:
            return images, targets
        height, width = images.shape[2:]
        side = sqrt(1 - draw_share(self.alpha, generator))
        top, bottom = _cut(height, side, generator)
        left, right = _cut(width, side, generator)
        partners = sent(draw_partners(len(images), generator), images.device)
        mixed = images.clone()
        mixed[:, :, top:bottom, left:right] = images[partners, :, top:bottom, left:right]
        share = 1 - (bottom - top) * (right - left) / (height * width)
        return mixed, torch.lerp(targets[partners], targets, share)


def _cut(length: int, side: float, generator: torch.Generator) -> tuple[int, int]:
    """First pixel of the box and the one after its last, about an evenly drawn centre."""
    centre = int(torch.randint(length, (), generator=generator))
    extent = int(length * side)
    start = centre - extent // 2
    return max(0, start), min(length, start + extent)
