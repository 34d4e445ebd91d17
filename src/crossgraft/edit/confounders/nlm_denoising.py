"""Denoising by non-local means, as the reconstruction software of a scanner does it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float64

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, measured_in
from crossgraft.errors import CrossgraftWarning

_DB2_DETAIL = np.array([-1 - 3**0.5, 3 + 3**0.5, 3**0.5 - 3, 1 - 3**0.5]) / 32**0.5
"""Daubechies' wavelet with two vanishing moments."""
_NORMAL_QUARTILE = 0.6744897501960817
_LEAST_DETAIL = 1e-9
"""Smaller details are rounding, and no image is stored so finely."""


def noise_sigma(image: Float64[np.ndarray, "height width"]) -> float:
    """Standard deviation of white noise in an image: median |d| / 0.6745 of its diagonal Daubechies-2 details d.

    Donoho and Johnstone 1994, Biometrika 81(3): 425–455, section 4.2. Details of 0, as of a masked background, do not count. The
    numbers of ``skimage.restoration.estimate_sigma``, which needs one more package, PyWavelets.
    """
    details = np.abs(_details(_details(image).T))
    details = details[details > _LEAST_DETAIL]
    return float(np.median(details) / _NORMAL_QUARTILE) if details.size else 0.0


@dataclass(frozen=True)
class NlmDenoising(Confounder):
    """Non-local means (NLM) denoising: a pixel becomes the mean of pixels whose surroundings look alike.

    Noise of standard deviation σ̂ is estimated from the image (``noise_sigma``). Where there is none, the image stays as it is,
    with a warning. Colours are denoised together, by the mean of their σ̂.

    Args:
        h: Reach of likeness: how different surroundings may be, in multiples of σ̂.
        patch_size: Side of the surroundings that are compared.
        patch_distance: Reach of the search in each direction.
        rician: Whether the noise is that of the magnitude of an MR signal: x² is denoised, with h in multiples of the mean
            standard deviation of x² that follows from σ̂, its bias 2·σ̂² is subtracted, and the root is taken.
    """

    name: ClassVar[str] = "nlm_denoising"
    title: ClassVar[str] = "NLM denoising"
    leaf: ClassVar[Leaf] = "imaging"
    modalities: ClassVar[str] = "MR"
    reference: ClassVar[str] = "Buades et al. 2005, CVPR 2: 60–65; for Rician noise Wiest-Daesslé et al. 2008, MICCAI: 171–179"

    h: float = field(default=0.8, metadata=measured_in("standard deviations of the noise", low=0.01, high=100))
    patch_size: int = field(default=5, metadata=measured_in("px", low=1, high=99))
    patch_distance: int = field(default=6, metadata=measured_in("px", low=1, high=99))
    rician: bool = field(default=False, metadata=measured_in("yes or no"))

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """All channels together."""
        sigma = float(np.mean([noise_sigma(plane) for plane in np.moveaxis(pixels, 2, 0)]))
        if sigma == 0:
            warnings.warn(f"{self.name} finds no noise in an image and leaves it as it is.", CrossgraftWarning, stacklevel=3)
            return Painted(pixels)
        if not self.rician:
            return Painted(self._denoised(pixels, sigma))
        squares = pixels**2
        # Mean over the image of 4σ²(A² + σ²), the variance of x² at a signal A, where the mean of x² is that of A² + 2σ².
        sigma_of_squares = 2 * sigma * np.sqrt(max(float(squares.mean()) - sigma**2, sigma**2))
        return Painted(np.sqrt(np.maximum(self._denoised(squares, sigma_of_squares) - 2 * sigma**2, 0)))

    def _denoised(self, pixels: Pixels, sigma: float) -> Pixels:
        from skimage.restoration import denoise_nl_means

        denoised = denoise_nl_means(
            pixels,
            patch_size=self.patch_size,
            patch_distance=self.patch_distance,
            h=self.h * sigma,
            sigma=sigma,
            fast_mode=True,
            channel_axis=-1,
        )
        return np.reshape(denoised, pixels.shape)  # an only channel comes back without its axis


def _details(image: Float64[np.ndarray, "height width"]) -> Float64[np.ndarray, "height half"]:
    """Details along the rows, every second value; rows go on mirrored at their ends."""
    width, taps = image.shape[1], len(_DB2_DETAIL)
    longer = np.pad(image, ((0, 0), (taps - 1, taps - 1)), mode="symmetric")
    every = sum(_DB2_DETAIL[taps - 1 - k] * longer[:, k : k + width + taps - 1] for k in range(taps))
    return np.asarray(every)[:, 1::2]
