"""What one look at the pixels of an image tells, without keeping them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from crossgraft.data.fingerprint import image_digest

THUMBNAIL_SIDE = 32
"""Pixels a side of the grey thumbnail that near duplicates are compared on."""

Thumbnail = UInt8[np.ndarray, "thumbnail_height thumbnail_width"]

_DEPTHS = {"uint8": "8-bit", "uint16": "16-bit", "float32": "float"}
_WHITE_8_BIT = 255
_FLOAT_ROUNDING = 1e-3  # of a step of 8 bits; division in float32 or float64 is off by less than 1e-4
_WIDE_STEP = 257  # 65535 / 255
_PIXELS_MEASURED = 2**16  # more do not change mean and spread of an image much
_WHITES = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
_SAMPLES_TRIED_FIRST = 1024  # a few samples usually show that an image is not grey, not 8-bit, not constant


class ImageFacts(NamedTuple):
    """What an image showed; all empty for one that cannot be decoded.

    Attributes:
        digest: ``image_digest`` of the samples as they were decoded.
        picture: The same of the canonical form: equal for images of one size that show the same picture, whether grey or
            RGB with three equal channels, whether 8 bits or the same 8 bits stretched to 16 or to floats.
        kind: Height, width, channels and depth in words.
        height: Height in pixels.
        width: Width in pixels.
        is_constant: Whether all pixels have the same value.
        peak_16_bit: Largest sample of a 16-bit image.
        thumbnail: Grey, ``THUMBNAIL_SIDE`` pixels a side whatever the shape of the image, or None if not asked for.
        intensity: Mean of the samples, as a fraction of white; None if no thumbnail was asked for.
        contrast: Their standard deviation, likewise.
    """

    digest: bytes = b""
    picture: bytes = b""
    kind: str = ""
    height: int = 0
    width: int = 0
    is_constant: bool = False
    peak_16_bit: int | None = None
    thumbnail: Thumbnail | None = None
    intensity: float | None = None
    contrast: float | None = None


def look_at(pixels: np.ndarray, *, with_thumbnail: bool = False) -> ImageFacts:
    """The facts of (height, width, 1 or 3) samples; O(number of samples)."""
    height, width, channels = pixels.shape
    digest = image_digest(pixels)
    canonical = canonical_form(pixels)
    intensity, contrast = _intensity_and_contrast(pixels) if with_thumbnail else (None, None)
    return ImageFacts(
        digest=digest,
        picture=digest if canonical is pixels else image_digest(canonical),
        kind=f"{height}×{width} {'grey' if channels == 1 else 'RGB'} {_DEPTHS[pixels.dtype.name]}",
        height=height,
        width=width,
        is_constant=_is_constant(pixels),
        peak_16_bit=int(pixels.max()) if pixels.dtype == np.uint16 else None,
        thumbnail=_thumbnail(pixels) if with_thumbnail else None,
        intensity=intensity,
        contrast=contrast,
    )


def canonical_form(pixels: np.ndarray) -> np.ndarray:
    """The plainest array that shows the same picture; ``pixels`` itself where there is none plainer.

    Three equal channels become one. Samples of 16 bits that are all 257 times an 8-bit one become 8-bit, and so do floats
    that are all an 8-bit one divided by 255.
    """
    canonical = pixels
    if pixels.shape[-1] == 3 and _holds(_has_equal_channels, pixels):
        canonical = canonical[..., :1]
    if canonical.dtype == np.uint16 and _holds(_is_stretched_from_8_bits, canonical):
        canonical = (canonical // _WIDE_STEP).astype(np.uint8)
    if canonical.dtype == np.float32 and _holds(_is_divided_8_bits, canonical):
        canonical = np.rint(canonical * _WHITE_8_BIT).astype(np.uint8)
    return canonical


def _holds(condition: Callable[[np.ndarray], bool], pixels: np.ndarray) -> bool:
    """Whether the condition holds for the first rows, and then for all."""
    few_rows = 1 + _SAMPLES_TRIED_FIRST // (pixels.shape[1] * pixels.shape[2])
    return condition(pixels[:few_rows]) and condition(pixels)


def _has_equal_channels(pixels: np.ndarray) -> bool:
    return bool((pixels[..., 0] == pixels[..., 1]).all() and (pixels[..., 0] == pixels[..., 2]).all())


def _is_stretched_from_8_bits(pixels: np.ndarray) -> bool:
    return not (pixels % _WIDE_STEP).any()


def _is_divided_8_bits(pixels: np.ndarray) -> bool:
    steps = pixels * _WHITE_8_BIT
    return bool((np.abs(steps - np.rint(steps)) < _FLOAT_ROUNDING).all())


def _is_constant(pixels: np.ndarray) -> bool:
    return _holds(lambda part: bool((part == pixels[0, 0]).all()), pixels)


def _intensity_and_contrast(pixels: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation over at most ``_PIXELS_MEASURED`` pixels, evenly spaced, as fractions of white."""
    step = math.ceil(math.sqrt(pixels.shape[0] * pixels.shape[1] / _PIXELS_MEASURED))
    grey = pixels[::step, ::step].mean(axis=-1, dtype=np.float64) / _WHITES[pixels.dtype.name]
    return float(grey.mean()), float(grey.std())


def _thumbnail(pixels: np.ndarray) -> Thumbnail:
    """Grey, 8-bit, averaged over boxes; colours weigh as in luminance.

    Other types are stretched to the range of the image: of 10 or 12 bits in 16 nothing would be left in 8.
    """
    if pixels.dtype != np.uint8:
        low, high = float(pixels.min()), float(pixels.max())
        scale = _WHITE_8_BIT / (high - low) if high > low else 0.0
        pixels = np.rint((pixels.astype(np.float32) - low) * scale).astype(np.uint8)
    picture = Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).convert("L")
    return np.asarray(picture.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.BOX))
