"""Moving the pixels of a batch, every image by a map of its own."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from crossgraft.tune.protocols import UnitImages

AffineMaps = Float[Tensor, "batch 2 3"]
"""Where an output pixel looks: offsets (x, y) from the centre of the image in pixels, from output to input."""


def uniform(low: float, high: float, *shape: int, generator: torch.Generator) -> Tensor:
    """Numbers drawn evenly from [low, high), on the CPU, so that they do not depend on the device of the images."""
    return low + (high - low) * torch.rand(shape, generator=generator)


def mirror_some(images: UnitImages, generator: torch.Generator, *, probability: float = 0.5) -> UnitImages:
    """Mirror each image left to right with this probability; exact, no pixel is interpolated."""
    chosen = torch.rand(len(images), generator=generator) < probability
    return torch.where(chosen.to(images.device).view(-1, 1, 1, 1), images.flip(-1), images)


def resample(images: UnitImages, maps: AffineMaps) -> UnitImages:
    """Look up every pixel where its map says, bilinearly; beyond the border, the nearest pixel of the border counts.

    One pass of ``grid_sample`` for the whole batch. Values stay between the smallest and the largest of the image, up
    to rounding, which is cut off at 0 and 1.
    """
    height, width = images.shape[2:]
    half = torch.tensor([width / 2, height / 2])
    normalised = torch.cat([maps[:, :, :2] * half / half[:, None], (maps[:, :, 2] / half)[:, :, None]], dim=2)
    grid = functional.affine_grid(normalised.to(images), list(images.shape), align_corners=False)
    moved = functional.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=False)
    return moved.clamp_(0, 1)


def rotations(radians: Float[Tensor, " batch"]) -> Float[Tensor, "batch 2 2"]:
    """One rotation matrix an angle."""
    cosine, sine = radians.cos(), radians.sin()
    return torch.stack([torch.stack([cosine, -sine], -1), torch.stack([sine, cosine], -1)], -2)
