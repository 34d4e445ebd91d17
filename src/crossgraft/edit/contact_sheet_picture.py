"""A contact sheet as a picture: a row without the edit, a row with it, a row of what changed."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Sequence

import numpy as np
from jaxtyping import UInt8
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import IdentityTransform
from PIL import Image

from crossgraft.edit.catalogue import PlacedEdit, options_with_units
from crossgraft.edit.contact_sheet import ContactSheet, EditedExample
from crossgraft.edit.contact_sheet_words import change_in_words, scale_in_words
from crossgraft.report.plots.style import OKABE_ITO, SETTINGS, shortened
from crossgraft.words.formatting import small_percent

CELL_PIXELS = 256
"""Smaller images are enlarged by a whole number, pixel by pixel, as far as they fit."""
_EDGE, _GAP, _LABELS, _LEAST_WIDTH = 40, 14, 152, 980
_TITLE, _TEXT, _SMALL = 30, 17, 15
_LINE = 1.45
_CHARACTER = 0.5  # width of a character by its height, for lines that are broken
_DPI = 72  # one point is one pixel
_INK, _QUIET, _EMPTY, _FRAME = "#1d2126", "#5a636d", "#f4f6f8", (201, 207, 214)
_NOTHING = np.array([246, 246, 244])
_DARKER, _BRIGHTER = (np.array([int(each[place : place + 2], 16) for place in (1, 3, 5)]) for each in OKABE_ITO[:2])

Coloured = UInt8[np.ndarray, "height width 3"]


def coloured_change(change: np.ndarray, mask: np.ndarray | None, limit: float) -> Coloured:
    """What changed, in colours: blue is darker, orange brighter, nearly white the same; the mask has an outline.

    Args:
        change: (height, width) in grey levels.
        mask: (height, width) whether a pixel is inside; None: no outline.
        limit: Change of the full colours.
    """
    share = np.clip(change / (limit or 1.0), -1, 1)[:, :, None]
    shaded = _NOTHING + np.where(share < 0, -share * (_DARKER - _NOTHING), share * (_BRIGHTER - _NOTHING))
    coloured = np.rint(shaded).astype(np.uint8)
    if mask is not None:
        coloured[_outline(mask)] = 40
    return coloured


def _outline(mask: np.ndarray) -> np.ndarray:
    """Pixels outside that touch the mask, so that nothing inside is hidden."""
    grown = np.pad(mask, 1)
    near = grown[:-2, 1:-1] | grown[2:, 1:-1] | grown[1:-1, :-2] | grown[1:-1, 2:]
    return near & ~mask


def enlarged(picture: np.ndarray) -> np.ndarray:
    """Every pixel a square, as large as ``CELL_PIXELS`` allow."""
    factor = max(1, CELL_PIXELS // max(picture.shape[:2]))
    return picture.repeat(factor, axis=0).repeat(factor, axis=1)


def sheet_png(placed: PlacedEdit, sheet: ContactSheet, headings: Sequence[tuple[str, str]]) -> bytes:
    """One PNG file of fixed bytes.

    Args:
        placed: The edit, with its place in MICCAT.
        sheet: The edit on the images.
        headings: Class and number of each image, as they stand above it.
    """
    with rc_context({**SETTINGS, "font.family": ["DejaVu Sans"]}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")  # of a name in another script
        page = _Drawing(placed, sheet, headings).pixels()
    content = io.BytesIO()
    Image.fromarray(page).save(content, format="PNG")
    return content.getvalue()


class _Drawing:
    """The figure, made from top to bottom; lengths are pixels from the upper left corner."""

    def __init__(self, placed: PlacedEdit, sheet: ContactSheet, headings: Sequence[tuple[str, str]]) -> None:
        shapes = [enlarged(image.without).shape for image in sheet.images]
        self.cell_height, self.cell_width = (
            max(CELL_PIXELS // 2, *(shape[side] for shape in shapes)) for side in (0, 1)
        )
        columns = len(sheet.images)
        self.width = max(2 * _EDGE + _LABELS + columns * (self.cell_width + _GAP), _LEAST_WIDTH)
        lines = self._lines(placed, sheet)
        reference = self._wrapped(placed.edit.reference, _SMALL)
        rows = 3 * (self.cell_height + _GAP) + 2.5 * _SMALL * _LINE
        heading = _TITLE * 1.6 + len(lines) * _TEXT * _LINE + 20 + 2 * _SMALL * _LINE
        self.height = int(2 * _EDGE + heading + rows + len(reference) * _SMALL * _LINE)
        self.pictures: list[tuple[np.ndarray, int, int]] = []
        self.figure = Figure(figsize=(self.width / _DPI, self.height / _DPI), dpi=_DPI, facecolor="white")
        self._write(_EDGE, _EDGE, placed.edit.title, _TITLE, weight="bold")
        self._write(
            self.width - _EDGE, _EDGE + 8, placed.name, _TEXT, color=_QUIET, ha="right", family="DejaVu Sans Mono"
        )
        top = _EDGE + _TITLE * 1.6
        for text, colour in lines:
            self._write(_EDGE, top, text, _TEXT, color=colour)
            top += _TEXT * _LINE
        self._images(sheet, headings, top + 20)
        bottom = self.height - _EDGE - len(reference) * _SMALL * _LINE
        self._write(_EDGE, bottom, "\n".join(reference), _SMALL, color=_QUIET, linespacing=_LINE)

    def _lines(self, placed: PlacedEdit, sheet: ContactSheet) -> list[tuple[str, str]]:
        """Place and scope, options with units, what changed, and what went wrong."""
        options = options_with_units(placed.edit)
        said = [
            (f"{placed.place}, touches {placed.scope}", _QUIET),
            (f"Default options: {options}" if options else "No options", _QUIET),
            (change_in_words(sheet.rms, sheet.share_changed, sheet.psnr, sheet.share_touched), _INK),
            *((problem, OKABE_ITO[1]) for problem in sheet.problems),
        ]
        return [(line, colour) for text, colour in said for line in self._wrapped(text, _TEXT)]

    def _wrapped(self, text: str, size: int) -> list[str]:
        return textwrap.wrap(text, int((self.width - 2 * _EDGE) / (size * _CHARACTER)))

    def _images(self, sheet: ContactSheet, headings: Sequence[tuple[str, str]], top: float) -> None:
        first = int(top + 2 * _SMALL * _LINE)
        tops = [first + row * (self.cell_height + _GAP) for row in range(3)]
        for row, name in zip(tops, ("without", "with", "change"), strict=True):
            self._write(_EDGE, row, name, _TEXT, weight="bold")
        if sheet.limit:
            self._scale(sheet, int(tops[2] + 1.6 * _TEXT))
        for column, (image, (name, number)) in enumerate(zip(sheet.images, headings, strict=True)):
            left = _EDGE + _LABELS + column * (self.cell_width + _GAP)
            longest = int(self.cell_width / (_SMALL * _CHARACTER))
            self._write(left, top, shortened(name, longest), _SMALL, weight="bold")
            self._write(left, top + _SMALL * _LINE, number, _SMALL, color=_QUIET)
            self._column(image, sheet.limit, left, tops)

    def _column(self, image: EditedExample, limit: float, left: int, tops: Sequence[int]) -> None:
        self.pictures.append((enlarged(image.without), left, tops[0]))
        if image.edited is None or image.change is None:
            for top in tops[1:]:
                self._empty(left, top)
            return
        self.pictures.append((enlarged(image.edited), left, tops[1]))
        mask = None if image.mask is None else enlarged(image.mask)
        change = coloured_change(enlarged(image.change), mask, limit)
        self.pictures.append((change, left, tops[2]))
        touched = "" if image.share_touched is None else f", mask {small_percent(image.share_touched)}"
        self._write(left, tops[2] + len(change) + 6, f"rms {image.rms:.2f}{touched}", _SMALL, color=_QUIET)

    def _scale(self, sheet: ContactSheet, top: int) -> None:
        """Colours of the changes, and what they mean."""
        wide, high = _LABELS - 32, 14
        ramp = np.broadcast_to(np.linspace(-1, 1, wide, dtype=np.float32), (high, wide))
        self.pictures.append((coloured_change(ramp, None, 1.0), _EDGE, top))
        ends = scale_in_words(sheet.limit)
        for place, text, side in ((0, ends[0], "left"), (wide, ends[1], "right")):
            self._write(_EDGE + place, top + high + 4, text, _SMALL, ha=side)
        note = ["grey levels of 255", "dark line: mask"] if sheet.share_touched is not None else ["grey levels of 255"]
        self._write(
            _EDGE, top + high + 4 + _SMALL * _LINE, "\n".join(note), _SMALL - 2, color=_QUIET, linespacing=_LINE
        )

    def _write(self, left: float, top: float, text: str, size: float, **how: object) -> None:
        look = {"color": _INK, "va": "top", "ha": "left", **how}
        self.figure.text(left / self.width, 1 - top / self.height, text, fontsize=size, **look)  # pyright: ignore[reportArgumentType]

    def _empty(self, left: int, top: int) -> None:
        corner = (left, self.height - top - self.cell_height)
        box = Rectangle(
            corner, self.cell_width, self.cell_height, facecolor=_EMPTY, linewidth=0, transform=IdentityTransform()
        )
        self.figure.add_artist(box)
        middle = (left + self.cell_width / 2, top + self.cell_height / 2)
        self._write(*middle, "cannot be edited", _SMALL, color=_QUIET, ha="center", va="center")

    def pixels(self) -> Coloured:
        """The whole sheet: words as matplotlib draws them, pictures pixel by pixel in a thin frame."""
        canvas = FigureCanvasAgg(self.figure)
        canvas.draw()
        page = np.array(canvas.buffer_rgba())[:, :, :3]
        for picture, left, top in self.pictures:
            height, width = picture.shape[:2]
            page[top - 1 : top + height + 1, left - 1 : left + width + 1] = _FRAME
            page[top : top + height, left : left + width] = picture
        return page
