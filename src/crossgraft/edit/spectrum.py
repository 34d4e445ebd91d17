"""Radial spectra of images: how much of them is coarse and how much is fine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64

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
        raise DataError(f"{name}:unit=px needs square images, got {height} × {width}. Give cutoff in cycles per pixel instead.")


Rings = Float64[np.ndarray, " rings"]
Quantity = Literal["magnitude", "power"]
Reduction = Literal["mean2pi", "sum"]
Normalization = Literal["sum", "max", "none"]


def radial_psd(
    image: Float[np.ndarray, "height width *channels"],
    *,
    quantity: Quantity = "magnitude",
    reduce: Reduction = "mean2pi",
    window: Literal["none", "hann"] = "none",
) -> Rings:
    """PSD(ω_k) = ∫ ‖F(X)(ω_k cos φ, ω_k sin φ)‖ dφ (equation 5.1) as 2π times the mean of a ring, k = 0 … M/2 − 1, M = min(H, W).

    Corners, beyond the Nyquist frequency of the shorter side, are in no ring. Of several channels the mean of their spectra.

    Args:
        image: (height, width) or (height, width, channels).
        quantity: ``magnitude`` |F|, as the equation is printed, or ``power`` |F|².
        reduce: ``mean2pi``, or ``sum``: the sum of a ring, which grows with its radius.
        window: ``hann`` damps the cross that the borders of an image make.

    Returns:
        (M // 2,); ring k is k / M cycles per pixel.

    Raises:
        DataError: The image is no (height, width[, channels]), or has values that are not finite.
        UsageError: An option has no such value.

    Cost: one FFT per channel, 5 ms for 512².

    Source: thesis, section 5.1.
    """
    for name, value, known in (
        ("quantity", quantity, ("magnitude", "power")),
        ("reduce", reduce, ("mean2pi", "sum")),
        ("window", window, ("none", "hann")),
    ):
        if value not in known:
            raise UsageError(f"{name} of a radial PSD must be {' or '.join(known)}, got {value!r}.")
    values = np.asarray(image, dtype=np.float64)
    if values.ndim not in (2, 3) or min(values.shape[:2]) < 2:
        raise DataError(f"A radial PSD is of an image (height, width) or (height, width, channels), got {values.shape}.")
    if not np.isfinite(values).all():
        raise DataError("The image has values that are NaN or infinite.")
    height, width = values.shape[:2]
    if window == "hann":
        taper = np.hanning(height)[:, None] * np.hanning(width)
        values = values * (taper if values.ndim == 2 else taper[:, :, None])
    magnitude = np.abs(spectrum_of(values))
    amount = magnitude**2 if quantity == "power" else magnitude
    per_pixel = amount if values.ndim == 2 else amount.mean(axis=2)
    rings, number = ring_numbers(height, width).ravel(), min(height, width) // 2
    inside = rings < number
    sums = np.bincount(rings[inside], weights=per_pixel.ravel()[inside], minlength=number)
    if reduce == "sum":
        return sums
    return 2 * np.pi * sums / np.bincount(rings[inside], minlength=number)


def normalized_psd(psd: Rings, *, by: Normalization = "sum") -> Rings:
    """A spectrum whose ring 0, the mean of the image, is 0, scaled to a sum (or a maximum) of 1; zeros stay zeros.

    Args:
        psd: From ``radial_psd``.
        by: ``sum``, for comparisons; ``max``, for figures; ``none``.

    Raises:
        UsageError: ``by`` has no such value.
    """
    if by not in ("sum", "max", "none"):
        raise UsageError(f"A spectrum is normalised by sum, max or none, not {by!r}.")
    if by == "none":
        return np.array(psd, dtype=np.float64)
    without_mean = np.array(psd, dtype=np.float64)
    without_mean[0] = 0
    scale = without_mean.sum() if by == "sum" else without_mean.max()
    return without_mean / scale if scale > 0 else without_mean


def mean_psd(images: Iterable[np.ndarray]) -> Float64[np.ndarray, " rings"]:
    """Mean over images of their spectra, which are not normalised.

    Raises:
        DataError: There is no image, or sizes differ, so that rings are not the same frequencies.
    """
    spectra = [radial_psd(image) for image in images]
    if not spectra:
        raise DataError("There is no image.")
    if len({len(each) for each in spectra}) > 1:
        raise DataError("Images differ in size, so that their rings are other frequencies. Resize them first.")
    return np.mean(spectra, axis=0)
