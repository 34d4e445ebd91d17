"""Arrays of images in the layouts that people save."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from crossgraft.data.decoding import composite_on_black
from crossgraft.errors import DataError

_MEANING = "uint8 (0 … 255), uint16 (0 … 65535), bool, or float (0 … 1)"


def images_in_rows(array: np.ndarray, where: str) -> np.ndarray:
    """A view of ``array`` as (n, height, width, channels) with 1, 3 or 4 channels.

    Args:
        array: (n, height, width), (n, height, width, channels) or (n, channels, height, width).
        where: Name of the array in messages.

    Raises:
        DataError: Another shape; no image; or a type whose range from black to white is not known.
    """
    if array.dtype.kind not in "fb" and array.dtype.name not in ("uint8", "uint16"):
        raise DataError(
            f"The {where} has pixels of type {array.dtype}, whose range is not known. Save them as {_MEANING}."
        )
    if array.ndim == 3:
        array = array[..., np.newaxis]
    elif array.ndim == 4 and array.shape[-1] not in (1, 3, 4) and array.shape[1] in (1, 3, 4):
        array = np.moveaxis(array, 1, -1)
    if array.ndim != 4 or array.shape[-1] not in (1, 3, 4):
        raise DataError(
            f"The {where} has shape {array.shape}; expected (images, height, width) or (images, height, width, "
            "channels) with 1, 3 or 4 channels."
        )
    if 0 in array.shape:
        raise DataError(f"The {where} is empty: its shape is {array.shape}.")
    return array


def about_channels(arrays: Iterable[np.ndarray]) -> tuple[str, ...]:
    """What is made of a fourth channel, as a sentence; none where there is none."""
    if all(array.shape[-1] != 4 for array in arrays):
        return ()
    return (
        "The images have 4 channels: the fourth is taken for transparency, over black. If it is a channel of its own, such as "
        "near infrared or a sequence of MR, save three channels.",
    )


def image_in_row(array: np.ndarray, row: int) -> np.ndarray:
    """Image ``row`` of such an array as (height, width, 1 or 3) uint8, uint16 or float32."""
    pixels = array[row]
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype.kind == "f":
        pixels = pixels.astype(np.float32)
    return composite_on_black(pixels)
