"""Images as a network gets them, a few at a time."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from jaxtyping import Float64

from crossgraft.audit._network_priority import Prepared
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError
from crossgraft.types import Preprocessing

AT_ONCE = 32
"""Images that are prepared together, and that a network looks at."""
LEAST_SIDE_PIXELS = 6
"""An input of a shorter side has fewer than three rings, of which nothing can be compared."""


def shorter_side(preprocessing: Preprocessing) -> int:
    """Pixels of the shorter side of the input, from which frequencies are counted.

    Raises:
        DataError: It is too small.
    """
    side = min(preprocessing.height_pixels, preprocessing.width_pixels)
    if side < LEAST_SIDE_PIXELS:
        raise DataError(
            f"The input of the network has a side of {side} pixels; frequencies can be compared from {LEAST_SIDE_PIXELS} on."
        )
    return side


def prepared_batches(images: ImageRows, preprocessing: Preprocessing) -> Generator[Prepared]:
    """Batches of ``AT_ONCE`` images; the last one may be smaller."""
    for first in range(0, len(images), AT_ONCE):
        yield prepare_batch(
            [images.read(row) for row in range(first, min(first + AT_ONCE, len(images)))], preprocessing
        )


def network_inputs(
    images: ImageRows, preprocessing: Preprocessing
) -> Generator[Float64[np.ndarray, "height width channels"]]:
    """Each image as the network gets it."""
    for batch in prepared_batches(images, preprocessing):
        yield from np.moveaxis(batch.double().numpy(), 1, 3)
