"""Light augmentation: a window of the image, mirrored or not, a little brighter or flatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from crossgraft.errors import UsageError
from crossgraft.tune.augmentations._geometry import mirror_some, resample, uniform
from crossgraft.tune.protocols import UnitImages


@dataclass(frozen=True)
class Light:
    """A random window, resized to the whole, then a change of contrast and brightness.

    For each image on its own: mirrored with probability ½; a window whose sides are u times those of the image, u from
    [``smallest_side``, 1), aspect kept, anywhere inside; then x → b·(m + c·(x − m)) with the mean m of the image over
    pixels and channels, c from 1 ± ``contrast``, b from 1 ± ``brightness``, cut off at 0 and 1. All draws are uniform. A
    window never reaches over the border, so nothing is made up there. A strength of zero leaves every bit.

    Cost: one bilinear look-up and two passes per batch.

    Attributes:
        smallest_side: Least side of the window as a share of the image's, in (0, 1]; 1 turns windows off.
        brightness: Largest relative change of brightness, in [0, 1).
        contrast: Largest relative change of contrast, in [0, 1).
        flip: Mirror half of the images left to right.

    Raises:
        UsageError: A value is out of its range.
    """

    name: ClassVar[str] = "light"
    title: ClassVar[str] = "Light (mirror, window, brightness)"
    citation: ClassVar[str] = "windows after Szegedy et al., Going Deeper with Convolutions, CVPR 2015, §6"

    smallest_side: float = 0.8
    brightness: float = 0.1
    contrast: float = 0.1
    flip: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.smallest_side <= 1:
            raise UsageError(f"light: smallest_side must be in (0, 1], not {self.smallest_side}.")
        for option in ("brightness", "contrast"):
            if not 0 <= getattr(self, option) < 1:
                raise UsageError(f"light: {option} must be in [0, 1), not {getattr(self, option)}.")

    def __call__(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        """Varied images of the same shape in [0, 1]."""
        if self.flip:
            images = mirror_some(images, generator)
        if self.smallest_side < 1:
            images = self._look_through_windows(images, generator)
        if self.brightness > 0 or self.contrast > 0:
            images = self._change_light(images, generator)
        return images

    def _look_through_windows(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        height, width = images.shape[2:]
        side = uniform(self.smallest_side, 1.0, len(images), generator=generator)
        offset = uniform(-0.5, 0.5, len(images), 2, generator=generator) * (1 - side)[:, None]
        maps = torch.zeros(len(images), 2, 3)
        maps[:, 0, 0] = maps[:, 1, 1] = side
        maps[:, :, 2] = offset * torch.tensor([float(width), float(height)])
        return resample(images, maps)

    def _change_light(self, images: UnitImages, generator: torch.Generator) -> UnitImages:
        shape = (len(images), 1, 1, 1)
        contrast = uniform(1 - self.contrast, 1 + self.contrast, *shape, generator=generator).to(images)
        brightness = uniform(1 - self.brightness, 1 + self.brightness, *shape, generator=generator).to(images)
        mean = images.mean((1, 2, 3), keepdim=True)
        return torch.addcmul(brightness * (1 - contrast) * mean, images, brightness * contrast).clamp_(0, 1)
