"""What the thesis on cross-domain transfer did to its training images, chapter by chapter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, radians
from typing import ClassVar, Literal

import torch
from jaxtyping import Bool
from torch import Tensor
from torchvision.transforms.v2 import functional as colour

from crossgraft.compute import sent
from crossgraft.errors import UsageError
from crossgraft.tune.augmentations._geometry import AffineMaps, chosen_images, mirror, resample, rotations, uniform
from crossgraft.tune.image_protocols import Drawn, DrawsApart, UnitImages

_CHAPTERS = (3, 4, 6)
# Chapters 3 and 4 (Keras' ImageDataGenerator)
_ROTATION_DEGREES = 10
_SHIFT = 0.1  # of the width and of the height
_SHEAR_DEGREES = 0.1  # Keras reads shear_range in degrees: 0.1 moves the rim of 224 pixels by a fifth of a pixel
_ZOOM = 0.1
# Chapter 6; what it leaves open is torchvision's default
_ROTATION_DEGREES_6 = 5
_AREA = (0.08, 1.0)
_ASPECT = (3 / 4, 4 / 3)
_CROP_TRIALS = 10
_SHARPNESS = 2.0
_PROBABILITY = 0.5
_LEVEL = 1 / 255


@dataclass(frozen=True)
class Thesis(DrawsApart):
    """The augmentation of one chapter.

    Chapter 3 (§3.4.1, RadImageNet against ImageNet) and chapter 4 (§4.2.2) give the arguments of Keras'
    ``ImageDataGenerator``: rotation up to ±10°, shifts up to ±0.1 of width and height, shear up to ±0.1 (Keras: degrees),
    zoom 1 ± 0.1 in x and y on their own, fill mode "nearest" (the border is repeated). Chapter 3 also mirrors, unless the
    target is chest X-rays (``flip=False``); chapter 4 never does, whatever ``flip`` says.

    Chapter 6 (§6.4.2): mirrored with probability ½, random resized crop, rotation from 0° to 5°, random sharpness,
    autocontrast, equalisation. It gives no further numbers; here torchvision's defaults fill in (area 0.08 to 1, aspect
    3/4 to 4/3, each colour change with probability ½) and a sharpness of 2. The crop is cut out of the resized image;
    equalised images have levels of 8 bits.

    Cost: one bilinear look-up a batch; chapter 6 adds a histogram of the images that it equalises.

    Attributes:
        chapter: 3, 4 or 6.
        flip: Whether images may be mirrored.

    Raises:
        UsageError: The chapter did not train on images of its own.
    """

    name: ClassVar[str] = "thesis"
    title: ClassVar[str] = "Of the thesis on cross-domain transfer"
    citation: ClassVar[str] = "thesis on cross-domain transfer in medical images, §3.4.1, §4.2.2, §6.4.2"

    chapter: Literal[3, 4, 6] = 3
    flip: bool = True

    def __post_init__(self) -> None:
        if self.chapter not in _CHAPTERS:
            raise UsageError(f"thesis: chapter must be one of {_CHAPTERS}, not {self.chapter}.")

    def draw(self, num_images: int, height: int, width: int, generator: torch.Generator) -> Drawn:
        """Images to mirror, where each looks, and what changes its colours."""
        drawn: dict[str, Tensor] = {}
        if self.flip and self.chapter != 4:
            drawn["mirrored"] = chosen_images(num_images, generator)
        if self.chapter == 6:
            drawn["maps"] = _crops(num_images, height, width, generator)
            drawn["colours"] = _changes(num_images, generator)
        else:
            drawn["maps"] = _keras_maps(num_images, height, width, generator)
        return drawn

    def apply(self, images: UnitImages, drawn: Drawn) -> UnitImages:
        """Varied images of the same shape in [0, 1]."""
        if "mirrored" in drawn:
            images = mirror(images, drawn["mirrored"])
        images = resample(images, drawn["maps"])
        return _change_colours(images, drawn["colours"]) if "colours" in drawn else images


def _keras_maps(num_images: int, height: int, width: int, generator: torch.Generator) -> AffineMaps:
    """Rotation · shift · shear · zoom about the centre, from output to input, as Keras multiplies them."""
    size = torch.tensor([float(width), float(height)])
    angle = uniform(-radians(_ROTATION_DEGREES), radians(_ROTATION_DEGREES), num_images, generator=generator)
    shift = uniform(-_SHIFT, _SHIFT, num_images, 2, generator=generator) * size
    shear = uniform(-radians(_SHEAR_DEGREES), radians(_SHEAR_DEGREES), num_images, generator=generator)
    zoom = uniform(1 - _ZOOM, 1 + _ZOOM, num_images, 2, generator=generator)
    rotation = rotations(angle)
    # Keras writes matrices for (row, column), here x comes first: its [[1, −sin], [0, cos]] is [[cos, 0], [−sin, 1]].
    slant = torch.zeros(num_images, 2, 2)
    slant[:, 0, 0], slant[:, 1, 0], slant[:, 1, 1] = shear.cos(), -shear.sin(), 1
    linear = rotation @ slant @ torch.diag_embed(zoom)
    return torch.cat([linear, rotation @ shift[:, :, None]], dim=2)


def _crops(num_images: int, height: int, width: int, generator: torch.Generator) -> AffineMaps:
    """A window of random area and aspect, then a rotation of what is seen in it."""
    size = torch.tensor([float(width), float(height)])
    shape = (num_images, _CROP_TRIALS)
    area = uniform(*_AREA, *shape, generator=generator)
    aspect = uniform(log(_ASPECT[0]), log(_ASPECT[1]), *shape, generator=generator).exp() * height / width
    sides = torch.stack([(area * aspect).sqrt(), (area / aspect).sqrt()], -1)
    fits = (sides <= 1).all(-1)
    # Where no trial fits the image, the whole image is seen.
    side = torch.where(fits.any(1)[:, None], sides[torch.arange(num_images), fits.int().argmax(1)], 1.0)
    offset = uniform(-0.5, 0.5, num_images, 2, generator=generator) * (1 - side) * size
    angle = uniform(0.0, radians(_ROTATION_DEGREES_6), num_images, generator=generator)
    return torch.cat([torch.diag_embed(side) @ rotations(angle), offset[:, :, None]], dim=2)


def _changes(num_images: int, generator: torch.Generator) -> Bool[Tensor, "{num_images} 3"]:
    """Whether each image is sharpened, stretched, and equalised."""
    return (torch.rand(3, num_images, generator=generator) < _PROBABILITY).T


def _change_colours(images: UnitImages, chosen: Bool[Tensor, "batch 3"]) -> UnitImages:
    """Sharpness, autocontrast and equalisation, each on the images that draw it."""
    # numbers of rows, because a GPU would have to tell how many a mask has
    sharp, stretched, flat = (sent(torch.nonzero(change).flatten(), images.device) for change in chosen.T)
    changed = images.clone()
    changed[sharp] = colour.adjust_sharpness(changed[sharp], _SHARPNESS)
    changed[stretched] = _unless_even(changed[stretched], colour.autocontrast)
    changed[flat] = _unless_even(changed[flat], colour.equalize)
    return changed


def _unless_even(images: UnitImages, change: Callable[[Tensor], Tensor]) -> UnitImages:
    """Leave out channels within one level of 8 bits: the rounding of an even area would be spread to black and white."""
    spread = images.amax((2, 3), keepdim=True) - images.amin((2, 3), keepdim=True)
    return torch.where(spread < _LEVEL, images, change(images))
