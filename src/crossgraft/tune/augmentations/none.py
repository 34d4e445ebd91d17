"""No augmentation: the same images in every epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.tune.image_protocols import Drawn, DrawsApart, UnitImages


@dataclass(frozen=True)
class NoAugmentation(DrawsApart):
    """Images as they are; nothing is drawn.

    Attributes:
        flip: Without effect, because nothing is mirrored.
    """

    name: ClassVar[str] = "none"
    title: ClassVar[str] = "No augmentation"
    citation: ClassVar[str] = ""
    is_identity: ClassVar[bool] = True

    flip: bool = True

    def draw(self, num_images: int, height: int, width: int, generator: torch.Generator) -> Drawn:
        """Nothing."""
        return {}

    def apply(self, images: UnitImages, drawn: Drawn) -> UnitImages:
        """The same images."""
        return images
