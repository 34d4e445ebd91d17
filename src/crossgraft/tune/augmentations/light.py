"""Light augmentation: a window of the image, mirrored or not, a little brighter or flatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from crossgraft.compute import sent
from crossgraft.errors import UsageError
from crossgraft.tune.augmentations._geometry import AffineMaps, chosen_images, mirror, resample, uniform
from crossgraft.tune.image_protocols import Drawn, DrawsApart, UnitImages


@dataclass(frozen=True)
class Light(DrawsApart):
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

    def draw(self, num_images: int, height: int, width: int, generator: torch.Generator) -> Drawn:
        """Images to mirror, windows, contrast and brightness."""
        drawn: dict[str, Tensor] = {}
        if self.flip:
            drawn["mirrored"] = chosen_images(num_images, generator)
        if self.smallest_side < 1:
            drawn["windows"] = self._windows(num_images, height, width, generator)
        if self.brightness > 0 or self.contrast > 0:
            shape = (num_images, 1, 1, 1)
            drawn["contrast"] = uniform(1 - self.contrast, 1 + self.contrast, *shape, generator=generator)
            drawn["brightness"] = uniform(1 - self.brightness, 1 + self.brightness, *shape, generator=generator)
        return drawn

    def apply(self, images: UnitImages, drawn: Drawn) -> UnitImages:
        """Varied images of the same shape in [0, 1]."""
        if "mirrored" in drawn:
            images = mirror(images, drawn["mirrored"])
        if "windows" in drawn:
            images = resample(images, drawn["windows"])
        return self._change_light(images, drawn) if "contrast" in drawn else images

    def _windows(self, num_images: int, height: int, width: int, generator: torch.Generator) -> AffineMaps:
        side = uniform(self.smallest_side, 1.0, num_images, generator=generator)
        offset = uniform(-0.5, 0.5, num_images, 2, generator=generator) * (1 - side)[:, None]
        maps = torch.zeros(num_images, 2, 3)
        maps[:, 0, 0] = maps[:, 1, 1] = side
        maps[:, :, 2] = offset * torch.tensor([float(width), float(height)])
        return maps

    def _change_light(self, images: UnitImages, drawn: Drawn) -> UnitImages:
        contrast, brightness = (sent(drawn[name].to(images.dtype), images.device) for name in ("contrast", "brightness"))
        mean = images.mean((1, 2, 3), keepdim=True)
        return torch.addcmul(brightness * (1 - contrast) * mean, images, brightness * contrast).clamp_(0, 1)
