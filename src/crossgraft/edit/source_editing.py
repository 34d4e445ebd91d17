"""Edits of whole data sets that take cues away: a flat spectrum, and coarser classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.edit.spectrum import spectrum_of
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
