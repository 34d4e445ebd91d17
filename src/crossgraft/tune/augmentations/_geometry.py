"""Moving the pixels of a batch, every image by a map of its own."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from crossgraft.compute import sent
from crossgraft.tune.image_protocols import UnitImages

AffineMaps = Float[Tensor, "batch 2 3"]
"""Where an output pixel looks: offsets (x, y) from the centre of the image in pixels, from output to input."""


def uniform(low: float, high: float, *shape: int, generator: torch.Generator) -> Tensor:
    """Numbers drawn evenly from [low, high), on the CPU, so that they do not depend on the device of the images."""
    return low + (high - low) * torch.rand(shape, generator=generator)


def chosen_images(num_images: int, generator: torch.Generator, *, probability: float = 0.5) -> Bool[Tensor, " batch"]:
    """Each image with this probability."""
    return torch.rand(num_images, generator=generator) < probability


def mirror(images: UnitImages, chosen: Bool[Tensor, " batch"]) -> UnitImages:
    """Mirror the chosen images left to right; exact, no pixel is interpolated."""
    return torch.where(sent(chosen, images.device).view(-1, 1, 1, 1), images.flip(-1), images)


def resample(images: UnitImages, maps: AffineMaps) -> UnitImages:
    """Look up every pixel where its map says, bilinearly; beyond the border, the nearest pixel of the border counts.

    One pass of ``grid_sample`` for the whole batch. Values stay between the smallest and the largest of the image, up
    to rounding, which is cut off at 0 and 1.
    """
    height, width = images.shape[2:]
    half = torch.tensor([width / 2, height / 2])
    normalised = torch.cat([maps[:, :, :2] * half / half[:, None], (maps[:, :, 2] / half)[:, :, None]], dim=2)
    grid = functional.affine_grid(sent(normalised.to(images.dtype), images.device), list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return moved.clamp_(0, 1)


def rotations(radians: Float[Tensor, " batch"]) -> Float[Tensor, "batch 2 2"]:
    """One rotation matrix an angle."""
    cosine, sine = radians.cos(), radians.sin()
    return torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
