"""What the drawn confounders share: text, lines and curves as coverage of pixels, and their mix with an image.

Lengths are in pixels; a position is (row, column), and pixel (i, j) reaches from (i, j) to (i + 1, j + 1).
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

import numpy as np
from jaxtyping import Float64
from PIL import Image, ImageDraw, ImageFont
from scipy.interpolate import CubicSpline

from crossgraft.edit._image_edit import Confounder, Painted, Pixels
from crossgraft.errors import DataError, UsageError

Coverage = Float64[np.ndarray, "height width"]
"""Share of each pixel that a drawing covers, 0 to 1."""
Line = Float64[np.ndarray, "_ 2"]
"""Corners of a line, (row, column) in pixels."""

SHARP_TEXT_PIXELS = 16
"""Smaller letters are drawn several times as large and averaged: the font moves their strokes to whole pixels."""


def mixed(pixels: Pixels, alpha: Coverage, value: float | tuple[float, ...]) -> Painted:
    """``pixels`` with ``value``, one or one per channel, laid over them; touched is where ``alpha`` is above 0."""
    return Painted(pixels + alpha[:, :, None] * (np.asarray(value) - pixels), alpha > 0)


@lru_cache(maxsize=8)  # images of a set have few sizes, and loading the font takes longer than the rest of an edit
def text_coverage(shape: tuple[int, int], text: str, *, size: float, xy: tuple[float, float], name: str) -> Coverage:
    """``text`` in the font that Pillow brings, not to be written to.

    Args:
        shape: Height and width of the image.
        text: What is written.
        size: Height of the letters as a share of the shorter side; below one pixel they are drawn one pixel high.
        xy: Upper left corner as shares of width and height, rounded to the nearest pixel.
        name: Name of the confounder, for the message.

    Raises:
        DataError: The text does not fit into the image.
    """
    pixels_high = max(size * min(shape), 1.0)
    zoom = math.ceil(SHARP_TEXT_PIXELS / pixels_high)
    font = ImageFont.load_default(zoom * pixels_high)
    left, _, right, bottom = ImageDraw.Draw(Image.new("L", (1, 1))).textbbox((0, 0), text, font=font, anchor="la")
    before = math.floor(min(left, 0) / zoom)  # a stroke may begin left of the anchor
    width, height = math.ceil(right / zoom) - before, math.ceil(bottom / zoom)
    row, column = round(xy[1] * shape[0]), round(xy[0] * shape[1]) + before
    if column < 0 or row + height > shape[0] or column + width > shape[1]:
        raise DataError(
            f"{name}: the text {text!r} covers rows {row} to {row + height} and columns {column} to {column + width}, "
            f"which do not lie in an image of {shape[0]} × {shape[1]}. Lower size, move xy, or shorten text."
        )
    canvas = Image.new("L", (width * zoom, height * zoom))
    ImageDraw.Draw(canvas).text((-before * zoom, 0), text, fill=255, font=font, anchor="la")
    coverage = np.zeros(shape)
    coverage[row : row + height, column : column + width] = np.asarray(canvas.reduce(zoom), dtype=np.float64) / 255
    coverage.flags.writeable = False
    return coverage


def refuse_blank(text: str, name: str) -> None:
    """A text without a letter would leave the image as it is.

    Raises:
        UsageError: ``text`` is empty or blank.
    """
    if not text.strip():
        raise UsageError(f"text of {name} must have at least one letter, got {text!r}.")


def stroke_coverage(shape: tuple[int, int], lines: Iterable[Line], width: float) -> Coverage:
    """Lines with round ends; a width below one pixel is drawn as one pixel. A line of one point twice is a disc."""
    half = max(width, 1.0) / 2
    return np.clip(half + 0.5 - distance_to(shape, lines, half + 0.5), 0, 1)


def distance_to(shape: tuple[int, int], lines: Iterable[Line], reach: float) -> Float64[np.ndarray, "height width"]:
    """Distance in pixels from the centre of each pixel to the nearest line, exact up to ``reach``; infinite far away."""
    distance = np.full(shape, np.inf)
    for start, stop in (piece for line in lines for piece in pairwise(line)):
        low = np.clip(np.floor(np.minimum(start, stop) - reach), 0, shape).astype(int)
        high = np.clip(np.ceil(np.maximum(start, stop) + reach), 0, shape).astype(int)
        window = distance[low[0] : high[0], low[1] : high[1]]
        down = np.arange(low[0], high[0])[:, None] + 0.5 - start[0]
        across = np.arange(low[1], high[1]) + 0.5 - start[1]
        along = stop - start
        # where the foot of the perpendicular lies on the piece; a piece without length is its point
        share = np.clip((down * along[0] + across * along[1]) / max(along @ along, 1e-12), 0, 1)
        np.minimum(window, np.hypot(down - share * along[0], across - share * along[1]), out=window)
    return distance


def curve(points: Line, pieces: int = 128) -> Line:
    """A cubic spline through ``points``, as a line of so many pieces."""
    return CubicSpline(np.linspace(0, 1, len(points)), points)(np.linspace(0, 1, pieces + 1))


class Lettering(Confounder, ABC):
    """Letters at one place, the same in every image; a leaf says which options come first and what they are by default.

    Attributes:
        text: Letters to write.
        size: Height of the letters as a share of the shorter side.
        xy: Upper left corner as shares of width and height.
        value: Brightness of the letters as a share of the range.
    """

    text: str
    size: float
    xy: tuple[float, float]
    value: float

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_blank(self.text, self.name)

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The letters at their place, the same in every image."""
        shape = pixels.shape[:2]
        return mixed(pixels, text_coverage(shape, self.text, size=self.size, xy=(*self.xy,), name=self.name), self.value)
