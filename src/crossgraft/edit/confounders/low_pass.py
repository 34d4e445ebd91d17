"""Low-pass denoising: frequencies outside a circle are removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in
from crossgraft.edit.spectrum import Unit, check_cutoff, check_sides, spectrum_of, within


def low_pass(
    image: Float[np.ndarray, "height width *channels"], cutoff: float, *, unit: Unit = "cycles"
) -> Float64[np.ndarray, "height width *channels"]:
    """X'(u, v) = X(u, v) · 1[D(u, v) ≤ D₀] (equation 4.1), the real part, not clipped.

    Args:
        image: (height, width) or (height, width, channels).
        cutoff: D₀, a radius; a frequency on the circle stays. 0: the constant mean.
        unit: ``cycles`` per pixel, whose Nyquist frequency is 0.5, or ``px``: indices of the transform.
    """
    inside = within(image.shape[0], image.shape[1], float(cutoff), unit)
    kept = inside if image.ndim == 2 else inside[:, :, None]
    return np.fft.ifft2(spectrum_of(np.asarray(image, dtype=np.float64)) * kept, axes=(0, 1)).real


@dataclass(frozen=True)
class LowPass(Confounder):
    """Low-pass denoising, as a reconstruction kernel or a scanner does it.

    The default is what the thesis prints: 500 of 1024 indices, which trims the corners of the spectrum alone. Its code has an
    ellipse 500 wide, a radius of 250: ``cutoff=0.244140625``.

    Args:
        cutoff: Radius of what stays.
        unit: ``cycles`` per pixel, or ``px``, indices of the transform of a square image.
    """

    name: ClassVar[str] = "low_pass"
    title: ClassVar[str] = "Low-pass denoising"
    leaf: ClassVar[Leaf] = "imaging"
    domain: ClassVar = "fourier"
    reference: ClassVar[str] = "Juodelyte, thesis on cross-domain transfer in medical imaging, equation 4.1"

    cutoff: float = field(default=500 / 1024, metadata=measured_in("cycles per pixel, or indices", low=0))
    unit: Unit = field(default="cycles", metadata=measured_in("name"))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_cutoff(self.name, self.cutoff, self.unit)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """Every channel for itself."""
        check_sides(self.name, pixels.shape, self.unit)
        return Painted(low_pass(pixels, self.cutoff, unit=self.unit))
