"""A bit string of each thumbnail that changes little when a picture is compressed, resized or brightened.

Like the usual perceptual hash it takes the signs of low cosine frequencies, with one difference: each frequency is
compared with its median over the data set. Pictures of one kind (all chest X-rays, say) agree in most frequencies, and
would all be near each other; around the median of their own kind half of them fall on either side.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32
from scipy.fft import dctn

from crossgraft.data._image_facts import THUMBNAIL_SIDE
from crossgraft.data.checks._banded_search import BitStrings

NUM_BITS = 128
"""The lowest frequencies, without the mean: 8 bands of 16 bits."""

Normalised = Float32[np.ndarray, "num_images num_pixels"]
Coefficients = Float32[np.ndarray, "num_images num_bits"]

_IN_ONE_PIECE = 4096  # images transformed at a time


def normalise(thumbnails: np.ndarray) -> Normalised:
    """(n, side, side) thumbnails as rows of mean 0 and mean square 1; rows without any contrast stay 0."""
    rows = thumbnails.reshape(len(thumbnails), -1).astype(np.float32)
    rows -= rows.mean(axis=1, keepdims=True)
    spread = np.sqrt((rows**2).mean(axis=1, keepdims=True))
    return rows / np.where(spread == 0, 1, spread)


def low_frequencies(rows: Normalised) -> tuple[Coefficients, np.ndarray]:
    """The ``NUM_BITS`` lowest cosine coefficients of each thumbnail, and the (vertical, horizontal) frequency of each."""
    side = THUMBNAIL_SIDE
    places = [(v, h) for v in range(side) for h in range(side) if v + h > 0]
    chosen = np.asarray(sorted(places, key=lambda place: (sum(place), abs(place[0] - place[1]), place))[:NUM_BITS])
    pieces = [
        np.asarray(dctn(rows[start : start + _IN_ONE_PIECE].reshape(-1, side, side), axes=(1, 2), norm="ortho"))
        for start in range(0, len(rows), _IN_ONE_PIECE)
    ]
    return np.concatenate([piece[:, chosen[:, 0], chosen[:, 1]] for piece in pieces]), chosen


def hash_views(rows: Normalised) -> tuple[BitStrings, BitStrings, BitStrings]:
    """Bit strings of the pictures as they are, mirrored left to right, and turned upside down.

    Mirroring changes the sign of the odd frequencies in its direction, so nothing is transformed twice.
    """
    coefficients, frequencies = low_frequencies(rows)
    middle = np.median(coefficients, axis=0)
    upside_down, mirrored = (np.where(frequencies[:, axis] % 2, -1, 1).astype(np.float32) for axis in (0, 1))
    plain, left_right, up_down = (
        np.packbits(coefficients * signs > middle, axis=1) for signs in (np.float32(1), mirrored, upside_down)
    )
    return plain, left_right, up_down
