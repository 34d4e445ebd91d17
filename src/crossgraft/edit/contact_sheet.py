"""What an edit does to a few images: each without it, with it, and what changed, small enough to stand on one sheet."""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, UInt8
from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.transforms import IdentityTransform
from PIL import Image

from crossgraft.choice import spell
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.edits import GREY_LEVELS, PlacedEdit, options_with_units
from crossgraft.edit.words import change_in_words, scale_in_words
from crossgraft.errors import CrossgraftError, CrossgraftWarning
from crossgraft.report.plots.svg import OKABE_ITO, SETTINGS, shortened
from crossgraft.seeding import generator
from crossgraft.words.formatting import small_percent

SIDE_PIXELS = 256
"""Largest side of a picture; larger images are made smaller."""
_SHOWN_QUANTILE = 0.995
"""Share of the changed pixels that lie within ``ContactSheet.limit``: a single outlier would make all others pale."""

Picture = UInt8[np.ndarray, "height width channels"]
Change = Float32[np.ndarray, "height width"]
Outlined = Bool[np.ndarray, "height width"]


class Example(NamedTuple):
    """One image before any edit.

    Attributes:
        pixels: (height, width, 1 or 3).
        identity: 64 hexadecimal digits of the pixels, that random numbers are drawn by.
    """

    pixels: np.ndarray
    identity: str


class EditedExample(NamedTuple):
    """One image on a sheet, its longer side at most as long as was asked for.

    Attributes:
        without: The image as it is; samples of more than 8 bits stretched from its darkest to its brightest.
        edited: The image with the edit, stretched by the same; None where it cannot be edited.
        change: Strongest change of the pixels and channels that became one, in grey levels of 8 bits; None as ``edited``.
        mask: Where a local edit touched it; None for an edit of the whole image.
        rms: Root mean square of what changed, at full size, in grey levels of 8 bits.
        share_changed: Share of the samples that changed.
        share_touched: Share of the pixels inside the mask.
        num_samples: Number of samples at full size.
        problem: Reason why it cannot be edited, or a warning; empty otherwise.
    """

    without: Picture
    edited: Picture | None = None
    change: Change | None = None
    mask: Outlined | None = None
    rms: float = 0.0
    share_changed: float = 0.0
    share_touched: float | None = None
    num_samples: int = 0
    problem: str = ""


class ContactSheet(NamedTuple):
    """An edit on a few images.

    Attributes:
        images: The images, those among them that cannot be edited.
        rms: Root mean square of what changed, over all images, in grey levels of 8 bits; None where none can be edited.
        share_changed: Share of the samples that changed.
        psnr: Peak signal-to-noise ratio in dB; infinite where nothing changed.
        share_touched: Mean share of the pixels inside the mask; None for an edit of the whole image.
        limit: Grey levels that 99.5 % of the changed pixels stay within, to two digits; 0 where nothing changed.
        problems: What kept images from being edited, and warnings, each once.
    """

    images: list[EditedExample]
    rms: float | None
    share_changed: float | None
    psnr: float | None
    share_touched: float | None
    limit: float
    problems: list[str]

    @property
    def num_edited(self) -> int:
        """Images that can be edited."""
        return sum(image.edited is not None for image in self.images)


def contact_sheet(edit: ImageEdit, examples: Sequence[Example], *, seed: int = 0, side: int = SIDE_PIXELS) -> ContactSheet:
    """Edit each image at its own size, as ``edit_data`` does with the same seed, and make everything small.

    Args:
        edit: What is done.
        examples: Images; one that cannot be edited stays there with the reason.
        seed: Random seed; an image has random numbers of its own, whatever its place.
        side: Largest side of what is kept, in pixels.

    Cost: one edit per image.
    """
    images = [_edited(edit, each, seed, side) for each in examples]
    done = [image for image in images if image.edited is not None]
    problems = list(dict.fromkeys(image.problem for image in images if image.problem))
    if not done:
        return ContactSheet(images, None, None, None, None, 0.0, problems)
    samples = np.array([image.num_samples for image in done])
    rms = math.sqrt(np.average([image.rms**2 for image in done], weights=samples))
    touched = [image.share_touched for image in done if image.share_touched is not None]
    return ContactSheet(
        images,
        rms=rms,
        share_changed=float(np.average([image.share_changed for image in done], weights=samples)),
        psnr=20 * math.log10(GREY_LEVELS / rms) if rms else math.inf,
        share_touched=float(np.mean(touched)) if touched else None,
        limit=_limit([image.change for image in done if image.change is not None]),
        problems=problems,
    )


def _edited(edit: ImageEdit, example: Example, seed: int, side: int) -> EditedExample:
    pixels = example.pixels
    low, high = (0.0, 255.0) if pixels.dtype == np.uint8 else (float(pixels.min()), float(pixels.max()))
    without = _picture(pixels, low, high, side)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", CrossgraftWarning)
            edited, info = edit(pixels, generator(seed, spell(edit), example.identity))
    except CrossgraftError as error:
        return EditedExample(without, problem=str(error))
    white = float(np.iinfo(pixels.dtype).max) if pixels.dtype.kind == "u" else 1.0
    cautions = [str(each.message) for each in warned if issubclass(each.category, CrossgraftWarning)]
    return EditedExample(
        without,
        edited=_picture(edited, low, high, side),
        change=_strongest(info.residual * (GREY_LEVELS / white), side),
        mask=None if info.mask is None else _largest(info.mask, side),
        rms=info.rms * GREY_LEVELS / white,
        share_changed=info.share_changed,
        share_touched=None if info.mask is None else float(info.mask.mean()),
        num_samples=pixels.size,
        problem=" ".join(dict.fromkeys(cautions)),
    )


def smaller(shape: tuple[int, int], side: int) -> tuple[int, int]:
    """Height and width with the same aspect whose longer one is at most ``side``."""
    factor = min(1.0, side / max(shape))
    return max(1, round(shape[0] * factor)), max(1, round(shape[1] * factor))


def _picture(pixels: np.ndarray, low: float, high: float, side: int) -> Picture:
    """Means of the pixels that become one: any other filter would add an artefact of its own."""
    stretched = (pixels.astype(np.float32) - low) * (GREY_LEVELS / max(high - low, 1e-12))
    samples = np.rint(np.clip(stretched, 0, GREY_LEVELS)).astype(np.uint8)
    height, width = smaller(samples.shape[:2], side)
    drawn = Image.fromarray(samples[:, :, 0] if samples.shape[2] == 1 else samples)
    small = np.asarray(drawn.resize((width, height), Image.Resampling.BOX))
    return small.reshape(height, width, samples.shape[2])


def shrink_picture(picture: Picture, side: int) -> UInt8[np.ndarray, "_ _ channels"]:
    """A picture whose longer side is at most ``side``."""
    return _picture(picture, 0.0, 255.0, side)


def shrink_change(change: Change, side: int) -> Float32[np.ndarray, "_ _"]:
    """The strongest of the changes that become one; their mean would lose what changes from pixel to pixel."""
    return _strongest(change[:, :, None], side)


def _strongest(residual: np.ndarray, side: int) -> Change:
    up = _largest(np.maximum(residual.max(axis=2), 0), side)
    down = _largest(np.maximum(-residual.min(axis=2), 0), side)
    return np.where(up >= down, up, -down).astype(np.float32)


def _largest(values: np.ndarray, side: int) -> np.ndarray:
    """(height, width) to a size of ``smaller``: the largest value of each block."""
    for axis, length in enumerate(smaller((values.shape[0], values.shape[1]), side)):
        starts = np.arange(length) * values.shape[axis] // length
        values = np.maximum.reduceat(values, starts, axis=axis)
    return values


def _limit(changes: Sequence[Float32[np.ndarray, "_ _"]]) -> float:
    sizes = np.abs(np.concatenate([change.ravel() for change in changes]))
    return float(f"{np.quantile(sizes[sizes > 0], _SHOWN_QUANTILE):.2g}") if sizes.any() else 0.0


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
        self.cell_height, self.cell_width = (max(CELL_PIXELS // 2, *(shape[side] for shape in shapes)) for side in (0, 1))
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
        self._write(self.width - _EDGE, _EDGE + 8, placed.name, _TEXT, color=_QUIET, ha="right", family="DejaVu Sans Mono")
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
        texts = [
            (f"{placed.place}, touches {placed.scope}", _QUIET),
            (f"Default options: {options}" if options else "No options", _QUIET),
            (change_in_words(sheet.rms, sheet.share_changed, sheet.psnr, sheet.share_touched), _INK),
            *((problem, OKABE_ITO[1]) for problem in sheet.problems),
        ]
        return [(line, colour) for text, colour in texts for line in self._wrapped(text, _TEXT)]

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
        self._write(_EDGE, top + high + 4 + _SMALL * _LINE, "\n".join(note), _SMALL - 2, color=_QUIET, linespacing=_LINE)

    def _write(self, left: float, top: float, text: str, size: float, **how: object) -> None:
        look = {"color": _INK, "va": "top", "ha": "left", **how}
        self.figure.text(left / self.width, 1 - top / self.height, text, fontsize=size, **look)  # pyright: ignore[reportArgumentType]

    def _empty(self, left: int, top: int) -> None:
        corner = (left, self.height - top - self.cell_height)
        box = Rectangle(corner, self.cell_width, self.cell_height, facecolor=_EMPTY, linewidth=0, transform=IdentityTransform())
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
