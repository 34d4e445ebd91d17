"""Collimation: the blades of an X-ray tube keep the edges of the picture dark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Coverage, mixed

LEAST_SHARE = 0.5
"""The shallowest blade of an image, as a share of the deepest that is allowed."""


@dataclass(frozen=True)
class Collimation(Confounder):
    """Dark margins with straight edges, where blades of lead keep the rays away.

    Each image draws how deep each of its four blades reaches, from half of ``depth`` to all of it, and how far it is turned.

    Args:
        depth: Largest depth of a blade at the middle of its edge, as a share of the height or width.
        tilt: Largest turn of a blade against the edge of the picture.
        penumbra: Width of the shadow between light and dark; at least one pixel is drawn.
        value: Brightness of the margins as a share of the range.
    """

    name: ClassVar[str] = "collimation"
    title: ClassVar[str] = "Collimation"
    leaf: ClassVar[Leaf] = "imaging"
    scope: ClassVar[Scope] = "local"
    modalities: ClassVar[str] = "X-ray"
    reference: ClassVar[str] = "Bushberg et al. 2011, The Essential Physics of Medical Imaging, 3rd edition"
    is_stochastic: ClassVar[bool] = True
    sham: ClassVar[ShamKind | None] = None
    why_no_sham: ClassVar[str] = "its margins lie around the whole image, and the smallest rectangle that holds them is all of it"

    depth: float = field(default=0.08, metadata=measured_in("share of the sides", low=0, high=0.45))
    tilt: float = field(default=2.0, metadata=measured_in("degrees", low=0, high=15))
    penumbra: float = field(default=1.0, metadata=measured_in("pixels", low=0, high=1000))
    value: float = field(default=0.0, metadata=measured_in("share of the range", low=0, high=1))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The same margins in every channel; two blades that overlap are no darker."""
        shares = rng.uniform(LEAST_SHARE, 1, 4) * self.depth
        turns = np.deg2rad(rng.uniform(-self.tilt, self.tilt, 4))
        shape = (pixels.shape[0], pixels.shape[1])
        return mixed(pixels, margins(shape, shares, turns, self.penumbra), self.value)


def margins(
    shape: tuple[int, int], shares: Float64[np.ndarray, " 4"], turns: Float64[np.ndarray, " 4"], penumbra: float
) -> Coverage:
    """Share of each pixel that a blade covers.

    Args:
        shape: Height and width.
        shares: Depth of the blades at the top, bottom, left and right, as shares of the height or width; 0: no blade.
        turns: Their turns in radians, about the middle of each edge.
        penumbra: Width of the shadow in pixels.
    """
    height, width = shape
    down, right = np.arange(height)[:, None] + 0.5, np.arange(width) + 0.5
    sides = (  # depth of a pixel below the edge, way along it from its middle, and the length that shares are of
        (down, right - width / 2, height),
        (height - down, right - width / 2, height),
        (right, down - height / 2, width),
        (width - right, down - height / 2, width),
    )
    soft, covered = max(penumbra, 1.0), np.zeros(shape)
    for (below, along, length), share, turn in zip(sides, shares.tolist(), turns.tolist(), strict=True):
        if share > 0:
            inside = (share * length - below) * np.cos(turn) + along * np.sin(turn)  # pixels, across the blade
            covered = np.maximum(covered, np.clip(inside / soft + 0.5, 0, 1))
    return covered
