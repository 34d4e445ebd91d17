"""Turn a matplotlib figure into an SVG that lives inside a page: themed, byte-stable, with ids of its own."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

from markupsafe import Markup

from crossgraft.words.visible import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEAST_SPAN = 1e-6
_ROOM_SHARE = 0.5  # of the span, on either side: the axis becomes at most twice as long


def frame(needed: Sequence[float | None], further: Sequence[float | None]) -> tuple[float, float] | None:
    """Ends of an axis with all of ``needed``, and of ``further`` what is near; None where there is nothing.

    >>> frame([0.0, 1.0], [-0.25, 1.25])
    (-0.25, 1.25)
    >>> frame([0.0, 1.0], [-4.0, 4.0])
    (-0.5, 1.5)
    """
    known = [value for value in needed if value is not None and math.isfinite(value)]
    if not known:
        return None
    low, high = min(known), max(known)
    room = max(high - low, _LEAST_SPAN) * _ROOM_SHARE
    more = [value for value in further if value is not None and math.isfinite(value)]
    return max(min([low, *more]), low - room), min(max([high, *more]), high + room)


INK = "#000000"  # becomes currentColor
PAPER = "#fefefe"  # becomes the page's background: the inside of hollow markers
FONT_PIXELS = 12.5
SMALL_PIXELS = 11.5
PIXELS_PER_CHARACTER = 7.2  # of a system sans at FONT_PIXELS, the widest of the common ones

# M. Okabe and K. Ito, Color universal design (2008). Yellow is left out: it vanishes on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
FAMILY_LIMIT = len(OKABE_ITO) * len(MARKERS)  # the two lengths share no factor

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "crossgraft",  # ids inside the file do not change from run to run
    "text.parse_math": False,  # a class named "$x$" is a name, not an equation
    "axes.unicode_minus": True,
    "font.size": FONT_PIXELS,
    "axes.labelsize": FONT_PIXELS,
    "axes.titlesize": FONT_PIXELS,
    "xtick.labelsize": SMALL_PIXELS,
    "ytick.labelsize": SMALL_PIXELS,
    "legend.fontsize": SMALL_PIXELS,
    "axes.linewidth": 0.8,
    "xtick.major.width": 0.8,
    "ytick.major.width": 0.8,
    "xtick.major.size": 4,
    "ytick.major.size": 4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "lines.markersize": 7,
    "legend.frameon": False,
}


class Mark(NamedTuple):
    """Colour and marker of one family; both differ, so that neither is needed alone."""

    colour: str
    marker: str


CONTROL = Mark(colour=INK, marker="o")  # drawn hollow and faint
CONTROL_ALPHA = 0.6


def family_marks(families: Iterable[str]) -> dict[str, Mark]:
    """A mark for each family, in order of first appearance (``FAMILY_LIMIT`` differ before one repeats)."""
    return {
        family: Mark(OKABE_ITO[index % len(OKABE_ITO)], MARKERS[index % len(MARKERS)])
        for index, family in enumerate(dict.fromkeys(families))
    }


def shortened(text: str, most_characters: int) -> str:
    """``text`` with its middle left out when it is too long; both ends tell models apart."""
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    if len(text) <= most_characters:
        return text
    head = (most_characters - 1) * 3 // 5
    return f"{text[:head]}…{text[len(text) - (most_characters - 1 - head) :]}"


POINTS_PER_INCH = 72  # matplotlib writes an SVG in points; one point becomes one CSS pixel here
_HREF = "{http://www.w3.org/1999/xlink}href"
# Older matplotlib writes one ``font`` property, newer ones ``font-size`` and ``font-family``.
_FONT = re.compile(r"font: (?:[a-z0-9]+ )*?([\d.]+px) [^;]*")
_FONT_FAMILY = re.compile(r"font-family: [^;]*;? ?")
_ID_REFERENCE = re.compile(r"url\(#")


_IS_LEFT_OUT: ContextVar[bool] = ContextVar("figures are left out", default=False)


@contextmanager
def figures_left_out() -> Generator[None]:
    """Inside, ``draw`` paints nothing and gives an empty drawing: for sections that become text, which has no figures."""
    before = _IS_LEFT_OUT.set(True)
    try:
        yield
    finally:
        _IS_LEFT_OUT.reset(before)


def draw(
    width: float, height: float, paint: Callable[[Figure], None], *, identifier: str, label: str, is_filled: bool = False
) -> Markup:
    """Paint on a fresh figure and return it as inline SVG.

    Args:
        width: Width in CSS pixels; the drawing shrinks with its container and never grows beyond this.
        height: Height in CSS pixels.
        paint: Draws on the figure; one unit of a font or a line is one pixel.
        identifier: Unique on the page; goes before every id, so that several drawings do not clash.
        label: Label for screen readers.
        is_filled: Whether its text stands on areas of colour, where a rim in the colour of the page would show.
    """
    if _IS_LEFT_OUT.get():
        return Markup()
    # A second of import, for whoever draws; palette and sizes are also for those who do not (``plain``).
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    # Settings are read when artists are made; the context also keeps them out of the user's own figures.
    with rc_context(SETTINGS), warnings.catch_warnings():
        # Only widths are measured with matplotlib's font; the browser draws with one that has the glyph.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from font")
        figure = Figure(figsize=(width / POINTS_PER_INCH, height / POINTS_PER_INCH))
        paint(figure)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    look = "plot filled" if is_filled else "plot"
    return _inline(text.getvalue(), width=width, identifier=identifier, label=label, look=look)


Margins = tuple[float, float, float, float]
"""Pixels left, right, above and below of axes."""


def framed_axes(figure: Figure, width: float, height: float, margins: Margins, *, title: str, x_label: str) -> Axes:
    """Axes between ``margins`` of a drawing of ``width`` × ``height`` pixels.

    The title, or what is drawn upwards, stands across the top, not along the axis: room for a long name, and nobody has to turn
    their head.
    """
    left, right, above, below = margins
    size = ((width - left - right) / width, (height - below - above) / height)
    axes = figure.add_axes((left / width, below / height, *size))
    axes.set_xlabel(x_label)
    figure.text(4 / width, 1 - 4 / height, shortened(title, int(width / PIXELS_PER_CHARACTER)), va="top")
    return axes


def _inline(svg: str, *, width: float, identifier: str, label: str, look: str) -> Markup:
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):  # a global style sheet would reach the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML knows svg elements without a namespace
        element.attrib.update({name: _inside(value, identifier) for name, value in element.attrib.items()})
        if "id" in element.attrib:
            element.attrib["id"] = f"{identifier}-{element.attrib['id']}"
        if _HREF in element.attrib:
            element.attrib["href"] = f"#{identifier}-{element.attrib.pop(_HREF)[1:]}"
    root.attrib = root_attributes(root.attrib["viewBox"], width, label, look)
    # ElementTree escapes every text and attribute, so the result can go into the page as it is.
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def root_attributes(view_box: str, width: float, label: str, look: str) -> dict[str, str]:
    """Attributes of the outermost element of a drawing, as style sheet and screen readers want them."""
    return {
        "class": look,
        "viewBox": view_box,
        "style": f"max-width: {width:g}px",
        "fill": "currentColor",
        "role": "img",
        "aria-label": visible(label),
    }


def themed(value: str) -> str:
    """Black becomes the colour of the text around, the paper colour the page's."""
    return value.replace(INK, "currentColor").replace(PAPER, "var(--paper)")


def _inside(value: str, identifier: str) -> str:
    """Colours of the theme, the fonts of the page, and ids of one drawing."""
    value = themed(value)
    value = _FONT_FAMILY.sub("", _FONT.sub(r"font-size: \1", value))
    return _ID_REFERENCE.sub(f"url(#{identifier}-", value)
