"""Edits of source data that take cues away: merged labels, whitened spectra, and what is left above a frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.edit._image_edit import ImageEdit, Painted, Pixels, measured_in
from crossgraft.edit.confounders.low_pass import low_pass
from crossgraft.edit.spectrum import Unit, check_cutoff, check_sides, spectrum_of
from crossgraft.errors import DataError

LEAST_COEFFICIENT = 1e-12
"""Below this share of the largest coefficient a phase is rounding, and the coefficient becomes 0."""


def whiten_spectrum(image: Float[np.ndarray, "height width *channels"]) -> Float64[np.ndarray, "height width *channels"]:
    """I_n = F⁻¹(F(I) / |F(I)|), then I_w = (I_n − μ_n) · σ_o / σ_n + μ_o (equation 5.2), each channel for itself, not clipped.

    What is left is phase: |F(I_w)| is σ_o / σ_n at every frequency but 0, mean and standard deviation are those of the image.
    Borders and labels of a letterbox are smeared over the whole picture.

    Args:
        image: (height, width) or (height, width, channels); a constant channel stays as it is.

    Raises:
        DataError: Values are not finite.

    Source: thesis, section 5.2, where it is called spectral normalisation.
    """
    values = np.asarray(image, dtype=np.float64)
    if not np.isfinite(values).all():
        raise DataError("The image has values that are NaN or infinite.")
    spectrum = spectrum_of(values)
    magnitude = np.abs(spectrum)
    has_phase = magnitude > LEAST_COEFFICIENT * magnitude.max(axis=(0, 1), keepdims=True)
    phases = np.where(has_phase, spectrum / np.where(has_phase, magnitude, 1), 0)
    flat = np.fft.ifft2(phases, axes=(0, 1)).real
    mean, deviation = (of(values, axis=(0, 1), keepdims=True) for of in (np.mean, np.std))
    own_mean, own_deviation = (of(flat, axis=(0, 1), keepdims=True) for of in (np.mean, np.std))
    varies = np.ptp(values, axis=(0, 1), keepdims=True) > 0
    scale = deviation / np.where(own_deviation > 0, own_deviation, 1)
    return np.where(varies, (flat - own_mean) * scale + mean, values)


def merge_labels(labels: Sequence[str] | np.ndarray, mapping: Mapping[str, str]) -> np.ndarray:
    """Each label by the coarser class that ``mapping`` gives it.

    Raises:
        DataError: A label has no coarser class; the message names some.
    """
    missing = sorted({str(label) for label in labels} - set(mapping))
    if missing:
        shown = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
        which = "1 class has" if len(missing) == 1 else f"{len(missing)} classes have"
        raise DataError(f"{which} no coarser one: {shown}. Add them to the mapping.")
    return np.array([mapping[str(label)] for label in labels])


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
