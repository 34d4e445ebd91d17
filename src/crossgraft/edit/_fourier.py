"""Frequencies of the discrete Fourier transform of an image, as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64

from crossgraft.errors import DataError, UsageError

Unit = Literal["cycles", "px"]
_ROUNDING = 1e-12


def whole_frequencies(size: int) -> Int64[np.ndarray, " _"]:
    """0, 1, … −2, −1 in the order of ``fft``; ``fftfreq(n) * n`` is not exactly whole for n = 24, 31, 33 and others."""
    frequencies = np.arange(size)
    return np.where(frequencies < (size + 1) // 2, frequencies, frequencies - size)


@lru_cache(maxsize=32)
def within(height: int, width: int, cutoff: float, unit: Unit) -> Bool[np.ndarray, "height width"]:
    """Which frequencies lie on or inside a circle around 0, in the order of ``fft2``.

    Args:
        height: Pixels.
        width: Pixels.
        cutoff: Radius.
        unit: ``cycles`` per pixel, or ``px``: indices of the transform, of which a circle is an ellipse in cycles per pixel
            where the image is not square.
    """
    ky, kx = whole_frequencies(height)[:, None], whole_frequencies(width)
    if unit == "px":
        inside = ky**2 + kx**2 <= cutoff**2 * (1 + _ROUNDING)
    else:
        inside = (ky * width) ** 2 + (kx * height) ** 2 <= (cutoff * height * width) ** 2 * (1 + _ROUNDING)
    inside.setflags(write=False)
    return inside


@lru_cache(maxsize=32)
def ring_numbers(height: int, width: int) -> Int64[np.ndarray, "height width"]:
    """Number of the ring of each frequency: M·√((ky/H)² + (kx/W)²), M = min(H, W), rounded half up."""
    ky, kx = whole_frequencies(height)[:, None], whole_frequencies(width)
    radius = min(height, width) * np.hypot(ky / height, kx / width)
    rings = np.floor(radius + 0.5).astype(np.int64)
    rings.setflags(write=False)
    return rings


def spectrum_of(image: Float64[np.ndarray, "height width *channels"]) -> np.ndarray:
    """``fft2`` of each channel."""
    return np.fft.fft2(image, axes=(0, 1))


def check_cutoff(name: str, cutoff: float, unit: str) -> None:
    """Refuse a radius that no unit can mean.

    Raises:
        UsageError: There is no such unit, or the circle lies outside the spectrum.
    """
    if unit not in ("cycles", "px"):
        raise UsageError(f"unit of {name} must be cycles or px, got {unit!r}.")
    if unit == "cycles" and cutoff > 1:
        raise UsageError(
            f"cutoff of {name} is {cutoff:g} cycles per pixel, above the 0.71 of the corner of the spectrum. For "
            "indices of the transform add unit=px."
        )


def check_sides(name: str, shape: Sequence[int], unit: Unit) -> None:
    """Refuse indices of an image whose sides have other ones.

    Raises:
        DataError: The image is not square.
    """
    height, width = shape[:2]
    if unit == "px" and height != width:
        raise DataError(
            f"{name}:unit=px needs square images, got {height} × {width}. Give cutoff in cycles per pixel instead."
        )
