"""High-pass: frequencies inside a circle are removed, the mean stays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.edit._image_edit import ImageEdit, Painted, Pixels, measured_in
from crossgraft.edit.confounders.low_pass import low_pass
from crossgraft.edit.spectrum import Unit, check_cutoff, check_sides


def high_pass(
    image: Float[np.ndarray, "height width *channels"], cutoff: float, *, unit: Unit = "cycles"
) -> Float64[np.ndarray, "height width *channels"]:
    """What a low-pass of the same cutoff takes, around the mean: x − low_pass(x) + mean(x), each channel for itself, not clipped.

    Args:
        image: (height, width) or (height, width, channels).
        cutoff: D₀, a radius; a frequency on the circle is removed, because the low-pass keeps it. 0: the image itself.
        unit: ``cycles`` per pixel, whose Nyquist frequency is 0.5, or ``px``: indices of the transform.

    Cost: two FFTs per channel.

    Source: complement of equation 4.1 of the thesis, which keeps D(u, v) ≤ D₀.
    """
    values = np.asarray(image, dtype=np.float64)
    return values - low_pass(values, cutoff, unit=unit) + values.mean(axis=(0, 1), keepdims=True)


@dataclass(frozen=True)
class HighPass(ImageEdit):
    """What is left of an image beside its coarse shapes: edges and texture on its mean. Values that leave the range are clipped.

    Args:
        cutoff: Radius of what goes.
        unit: ``cycles`` per pixel, or ``px``, indices of the transform of a square image.
    """

    name: ClassVar[str] = "high_pass"
    title: ClassVar[str] = "High-pass"
    reference: ClassVar[str] = "Complement of equation 4.1, Juodelyte, thesis on cross-domain transfer in medical imaging"

    cutoff: float = field(default=0.125, metadata=measured_in("cycles per pixel, or indices", low=0))
    unit: Unit = field(default="cycles", metadata=measured_in("name"))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cutoff(self.name, self.cutoff, self.unit)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel for itself."""
        check_sides(self.name, pixels.shape, self.unit)
        return Painted(high_pass(pixels, self.cutoff, unit=self.unit))
