"""TIFF stores samples in more layouts than Pillow reads; some it opens and misreads without a word."""

from __future__ import annotations

from PIL import Image
from PIL.TiffImagePlugin import (
    BITSPERSAMPLE,
    PHOTOMETRIC_INTERPRETATION,
    PLANAR_CONFIGURATION,
    SAMPLEFORMAT,
    TiffImageFile,
)

_SEPARATE_PLANES = 2
_SIGNED = 2
_WHITE_IS_ZERO = 0


class UnsupportedLayoutError(ValueError):
    """The file is sound, but its samples lie in it in a way that can not be read faithfully."""


def refuse_misread_layouts(image: Image.Image) -> None:
    """Raise for a TIFF that Pillow would decode into wrong pixels.

    Raises:
        UnsupportedLayoutError: Colour planes of more than 8 bits stored one after the other, or signed 8-bit samples.
    """
    if not isinstance(image, TiffImageFile):
        return
    bits = max(_tag(image, BITSPERSAMPLE, default=1))
    several_channels = len(image.getbands()) > 1
    if bits > 8 and several_channels and _tag(image, PLANAR_CONFIGURATION, default=1) == (_SEPARATE_PLANES,):
        raise UnsupportedLayoutError(
            f"its {bits}-bit colour planes are stored one after the other; save it as 16-bit RGB PNG"
        )
    if bits == 8 and _SIGNED in _tag(image, SAMPLEFORMAT, default=1):
        raise UnsupportedLayoutError("its samples are signed 8-bit numbers; rescale them to 0 … 255")


def is_white_zero(image: Image.Image) -> bool:
    """Does 0 mean white in this TIFF? Pillow turns 8-bit images of that kind around, but not those of 16 bits."""
    if not isinstance(image, TiffImageFile):
        return False
    return _tag(image, PHOTOMETRIC_INTERPRETATION, default=1) == (_WHITE_IS_ZERO,)


def _tag(image: TiffImageFile, tag: int, *, default: int) -> tuple[int, ...]:
    """All values of a tag, which Pillow gives as one number or as several."""
    value = image.tag_v2.get(tag, default)
    return tuple(value) if isinstance(value, tuple) else (value,)
