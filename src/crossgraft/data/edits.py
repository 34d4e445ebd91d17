"""Images whose pixels were changed, under the same labels, groups, splits and attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from crossgraft.data.inspection import KEPT_BYTES, InspectedImages, look_at
from crossgraft.errors import DataError

Edit = Callable[[np.ndarray, str], np.ndarray]
"""Function of the pixels of an image, (height, width, 1 or 3), read-only, and of its identity, 64 hexadecimal digits of the
pixels, that random numbers can be drawn by; to new pixels of the same shape and type. Called from several threads, and again
for images that do not fit in memory."""


def edited_images(
    images: InspectedImages,
    image_rows: Sequence[int] | np.ndarray,
    edit: Edit,
    rows: Collection[int],
    *,
    reshapes: bool = False,
    kept_bytes: int = KEPT_BYTES,
) -> InspectedImages:
    """The images of each row, edited in ``rows``, with facts and digests of the pixels that they have then.

    Args:
        images: What was decoded.
        image_rows: Image of each row.
        edit: What is done.
        rows: Rows that it is done to; unreadable ones stay as they are.
        reshapes: Whether images may have another height and width afterwards.
        kept_bytes: Edited images are kept in memory up to this many bytes; the others are edited at each reading.

    Raises:
        DataError: The edit changed the shape or the type of an image, or made samples that are not finite.
    """
    numbers = [int(row) for row in image_rows]
    unreadable = {index: images.unreadable[row] for index, row in enumerate(numbers) if row in images.unreadable}
    edited = {index for index in rows if index not in unreadable}

    def read(index: int) -> np.ndarray:
        pixels = images.read(numbers[index])
        if index not in edited:
            return pixels
        name = images.names[numbers[index]]
        try:
            return _checked(edit(pixels, images.facts[numbers[index]].digest.hex()), pixels, reshapes=reshapes)
        except DataError as error:
            raise DataError(f"{name} cannot be edited. {error}") from error

    facts, kept, room = [images.facts[row] for row in numbers], dict[int, np.ndarray](), kept_bytes
    for index in sorted(edited):
        pixels = read(index)
        facts[index] = look_at(pixels, with_thumbnail=facts[index].thumbnail is not None)
        if pixels.nbytes <= room:
            kept[index] = pixels
            room -= pixels.nbytes
    return InspectedImages([images.names[row] for row in numbers], facts, unreadable, read, kept)


def without_name(error: DataError) -> str:
    """Why an image cannot be edited, in a sentence that does not name its file, which may say who it is of."""
    cause = error.__cause__
    return f"An image cannot be edited. {cause}" if isinstance(cause, DataError) else str(error)


def _checked(edited: np.ndarray, pixels: np.ndarray, *, reshapes: bool) -> np.ndarray:
    kept = slice(2, None) if reshapes else slice(None)
    if edited.shape[kept] != pixels.shape[kept] or edited.dtype != pixels.dtype:
        raise DataError(
            f"The edit made {edited.shape} {edited.dtype} of {pixels.shape} {pixels.dtype}. An edit keeps shape and type."
        )
    if edited.dtype.kind == "f" and not (np.isfinite(edited).all() and edited.min() >= 0 and edited.max() <= 1):
        raise DataError("The edit made samples that are NaN, infinite or outside [0, 1].")
    view = edited.view()
    view.setflags(write=False)
    return view
