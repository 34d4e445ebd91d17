"""A small augmentation: every image a little darker."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.tune.augmentations import Augmentation, UnitImages


@dataclass(frozen=True)
class Dimming(Augmentation):
    """Each image times a number from [1 − depth, 1).

    Attributes:
        depth: In [0, 1].
        flip: Has no effect here.
    """

    name: ClassVar[str] = "dimming"
    title: ClassVar[str] = "Dimming"
    citation: ClassVar[str] = "Example of a third-party augmentation; no paper"

    depth: float = 0.3
    flip: bool = True

    def __call__(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        factors = 1 - self.depth * torch.rand(len(images), 1, 1, 1, generator=generator)
        return images * factors.to(images)
