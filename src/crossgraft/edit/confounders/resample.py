"""Resampling: an image that was stored smaller once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in


@dataclass(frozen=True)
class Resample(Confounder):
    """Resampling: the image is made smaller and brought back to its size, as by an archive or another matrix of a scanner.

    On the way down it is smoothed by as much as it shrinks, so that fine patterns do not turn into coarse ones.

    Args:
        scale: Sides of the small image as a share of the sides.
        order: Order of the spline between pixels: 0 the nearest, 1 linear, 3 cubic.
    """

    name: ClassVar[str] = "resample"
    title: ClassVar[str] = "Resampling"
    leaf: ClassVar[Leaf] = "imaging"
    reference: ClassVar[str] = "van der Walt et al. 2014, PeerJ 2: e453 (scikit-image, resize)"

    scale: float = field(default=0.5, metadata=measured_in("share of the sides", low=0.01, high=1))
    order: int = field(default=1, metadata=measured_in("order", low=0, high=5))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel for itself."""
        from skimage.transform import resize

        shape = pixels.shape[:2]
        small = resize(pixels, tuple(max(1, round(self.scale * side)) for side in shape), order=self.order)
        return Painted(np.asarray(resize(small, shape, order=self.order)))
