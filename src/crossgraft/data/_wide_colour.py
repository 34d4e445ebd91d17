"""16-bit colour images through Pillow, which on its own keeps only the high byte of every sample.

Pillow has no 16-bit colour mode: it unpacks such a file into 8 bits and says nothing. Its unpackers come in
two byte orders, though, and the wrong one hands over the low byte. So the file is decoded twice, once for
each byte, and the two halves are put together. Filters, interlacing and compression stay in the hands of
Pillow and libtiff.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from PIL import Image, ImageFile, ImageOps

from crossgraft.data._tiff_layouts import UnsupportedLayoutError

# Rawmodes of Pillow that drop the low byte. B and L: big- and little-endian, N: the byte order of this
# machine.
_NATIVE = "L" if sys.byteorder == "little" else "B"
_OTHER_ORDER = {"B": "L", "L": "B", "N": "B" if _NATIVE == "L" else "L"}


def is_wide_colour(image: Image.Image) -> bool:
    """Whether Pillow would reduce this image (opened, not yet loaded) from 16 to 8 bits per sample."""
    return any(";16" in raw for raw in _rawmodes(image)) and not image.mode.startswith(("I", "F"))


def read_wide_colour(reopen: Callable[[], AbstractContextManager[Image.Image]]) -> np.ndarray:
    """Decode all 16 bits.

    Args:
        reopen: Opens the file anew, not yet loaded.

    Returns:
        (height, width, channels) uint16, channels 2 (grey and alpha), 3 or 4 (colour and alpha), EXIF
        rotation applied.

    Raises:
        UnsupportedLayoutError: The layout of the samples is one that cannot be read byte by byte.
    """
    with reopen() as image:
        if image.mode == "LA" or _rawmodes(image) == ["LA;16B"]:
            return _read_grey_with_alpha(image)
    with reopen() as image:
        high = _transposed(image)
    with reopen() as image:
        _set_tiles(image, [tile._replace(args=_low_byte_args(tile.args)) for tile in _tiles(image)])
        low = _transposed(image)
    return (high.astype(np.uint16) << 8) | low


def _read_grey_with_alpha(image: Image.Image) -> np.ndarray:
    """A 16-bit grey-and-alpha pixel has the four bytes of an 8-bit RGBA pixel, and is unpacked as one."""
    if image.format != "PNG":
        raise UnsupportedLayoutError("16-bit grey with alpha is read from PNG only; save it without alpha")
    image._mode = "RGBA"
    _set_tiles(image, [tile._replace(args="RGBA") for tile in _tiles(image)])
    four_bytes = _transposed(image).astype(np.uint16)
    return (four_bytes[..., 0::2] << 8) | four_bytes[..., 1::2]


def _transposed(image: Image.Image) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(image))


def _tiles(image: Image.Image) -> list[Any]:
    """What the decoder still has to do; only an image file that is not loaded yet has any."""
    return list(image.tile) if isinstance(image, ImageFile.ImageFile) else []


def _set_tiles(image: Image.Image, tiles: list[Any]) -> None:
    if isinstance(image, ImageFile.ImageFile):
        image.tile = tiles


def _rawmodes(image: Image.Image) -> list[str]:
    """The unpacker of each tile; decoders take it alone or as the first of several arguments."""
    arguments = [tile.args for tile in _tiles(image)]
    return [str(args[0] if isinstance(args, tuple) else args) for args in arguments if args]


def _low_byte_args(args: Any) -> Any:
    rawmode = args[0] if isinstance(args, tuple) else args
    stem, _, order = str(rawmode).partition(";16")
    if stem not in ("RGB", "RGBA") or order not in _OTHER_ORDER:
        raise UnsupportedLayoutError(
            f"its 16-bit samples have the layout {rawmode}, which is not read; save it as 16-bit RGB PNG"
        )
    other = f"{stem};16{_OTHER_ORDER[order]}"
    return (other, *args[1:]) if isinstance(args, tuple) else other
