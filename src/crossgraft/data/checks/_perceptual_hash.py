"""A bit string of each thumbnail that changes little when a picture is compressed, resized or brightened.

Like the usual perceptual hash it takes the signs of low cosine frequencies, with one difference: each frequency is
compared with its median over the data set. Pictures of one kind (all chest X-rays, say) agree in most frequencies, and
would all be near each other; around the median of their own kind half of them fall on either side.
"""

from __future__ import annotations

from typing import NamedTuple

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


class View(NamedTuple):
    """One of the eight orientations of a square: mirrored along the diagonal or not, then in each direction or not.

    Attributes:
        in_words: What it is.
        diagonal: Whether rows and columns change places, first.
        left_right: Whether it is mirrored left to right then.
        up_down: Whether it is turned upside down then.
    """

    in_words: str
    diagonal: bool
    left_right: bool
    up_down: bool

    def of(self, pictures: np.ndarray) -> np.ndarray:
        """(n, side, side) pictures in this orientation."""
        turned = pictures.swapaxes(1, 2) if self.diagonal else pictures
        return turned[:, :: -1 if self.up_down else 1, :: -1 if self.left_right else 1]


VIEWS = (
    View("as they are", False, False, False),
    View("mirrored left to right", False, True, False),
    View("upside down", False, False, True),
    View("turned by 180°", False, True, True),
    View("turned by 90°", True, True, False),
    View("turned by 270°", True, False, True),
    View("mirrored along the diagonal", True, False, False),
    View("mirrored along the other diagonal", True, True, True),
)
"""The plainest first."""


def low_frequencies(rows: Normalised) -> tuple[Coefficients, np.ndarray]:
    """The ``NUM_BITS`` lowest cosine coefficients of each thumbnail, and the (vertical, horizontal) frequency of each.

    Behind them come those that a picture has there after rows and columns have changed places, where they are not among them.
    """
    side = THUMBNAIL_SIDE
    places = [(v, h) for v in range(side) for h in range(side) if v + h > 0]
    lowest = sorted(places, key=lambda place: (sum(place), abs(place[0] - place[1]), place))[:NUM_BITS]
    chosen = np.asarray([*lowest, *sorted({(h, v) for v, h in lowest} - set(lowest))])
    pieces = [
        np.asarray(dctn(rows[start : start + _IN_ONE_PIECE].reshape(-1, side, side), axes=(1, 2), norm="ortho"))
        for start in range(0, len(rows), _IN_ONE_PIECE)
    ]
    return np.concatenate([piece[:, chosen[:, 0], chosen[:, 1]] for piece in pieces]), chosen


def hash_views(rows: Normalised) -> list[BitStrings]:
    """Bit strings of the pictures in each of ``VIEWS``.

    Mirroring changes the sign of the odd frequencies in its direction, and along the diagonal both frequencies change places, so
    nothing is transformed twice.
    """
    coefficients, frequencies = low_frequencies(rows)
    column = {(int(v), int(h)): place for place, (v, h) in enumerate(frequencies)}
    lowest = frequencies[:NUM_BITS]
    across = [column[int(h), int(v)] for v, h in lowest]
    odd_up_down, odd_left_right = (np.where(lowest[:, axis] % 2, -1, 1).astype(np.float32) for axis in (0, 1))
    middle = np.median(coefficients[:, :NUM_BITS], axis=0)
    found: list[BitStrings] = []
    for view in VIEWS:
        seen = coefficients[:, across] if view.diagonal else coefficients[:, :NUM_BITS]
        signs = (odd_left_right if view.left_right else 1) * (odd_up_down if view.up_down else np.float32(1))
        found.append(np.packbits(seen * signs > middle, axis=1))
    return found
