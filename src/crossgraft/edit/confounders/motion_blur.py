"""Motion blur: the mean of an image along a short line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in

_POINTS_PER_PIXEL = 32


def line_spread(length: float, angle: float) -> Float64[np.ndarray, "side side"]:
    """What a point becomes while it moves along a line: weights of sum 1, the line in the middle.

    Args:
        length: Pixels, also broken ones; 0: the point itself.
        angle: Degrees from the rows, counter-clockwise.
    """
    reach = int(np.ceil(length / 2)) + 1
    number = max(1, round(_POINTS_PER_PIXEL * length))
    along = ((np.arange(number) + 0.5) / number - 0.5) * length
    y, x = reach - along * np.sin(np.deg2rad(angle)), reach + along * np.cos(np.deg2rad(angle))
    weights = np.zeros((2 * reach + 1, 2 * reach + 1))
    # A point between pixels counts for its four neighbours, by its distance.
    for row in (0, 1):
        for column in (0, 1):
            rows, columns = np.floor(y).astype(int) + row, np.floor(x).astype(int) + column
            np.add.at(weights, (rows, columns), (1 - np.abs(y - rows)) * (1 - np.abs(x - columns)))
    return weights / weights.sum()


@dataclass(frozen=True)
class MotionBlur(Confounder):
    """Motion blur: the patient or the detector moves evenly on a line during the exposure.

    Beyond its edges the image goes on mirrored.

    Args:
        length: Length of the line as a share of the width.
        angle: Direction from the rows, counter-clockwise; None: each image its own, between 0 and 180.
    """

    name: ClassVar[str] = "motion_blur"
    title: ClassVar[str] = "Motion blur"
    leaf: ClassVar[Leaf] = "imaging"
    reference: ClassVar[str] = "Gonzalez and Woods 2018, Digital Image Processing, section 5.6"
    is_stochastic: ClassVar[bool] = True

    length: float = field(default=0.02, metadata=measured_in("share of the width", low=0, high=1))
    angle: float | None = field(default=None, metadata=measured_in("degrees"))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel along the same line."""
        from scipy.ndimage import convolve

        angle = rng.uniform(0, 180) if self.angle is None else self.angle
        weights = line_spread(self.length * pixels.shape[1], angle)
        return Painted(convolve(pixels, weights[:, :, None], mode="reflect"))
