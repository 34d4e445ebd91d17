"""Bars, lines and words as SVG, written without matplotlib, which takes a second to import: for pages that need no more."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from markupsafe import Markup

from crossgraft.report.plots.svg import FONT_PIXELS, INK, SMALL_PIXELS, root_attributes, themed
from crossgraft.words.formatting import count
from crossgraft.words.visible import visible

_TICK = 4  # pixels
_TICK_WORDS = 16  # pixels from an axis to the base line of its numbers
_TITLE = 32.5  # and to that of its title
_BASE_LINE = 0.3  # of the size of a font, below the middle of its small letters
_LINE_WIDTH = 0.8


def whole_ticks(most: float) -> list[int]:
    """0 and the multiples of 1, 2 or 5 times a power of ten up to ``most``, at most four of them besides 0.

    >>> whole_ticks(25), whole_ticks(3), whole_ticks(0.5)
    ([0, 10, 20], [0, 1, 2, 3], [0])
    """
    steps = (digit * 10**power for power in range(400) for digit in (1, 2, 5))
    step = next(step for step in steps if most / step < 5)
    return list(range(0, int(most) + 1, step))


class PlainDrawing:
    """One drawing; places are in CSS pixels from its left upper corner.

    Args:
        width: It shrinks with its container and never grows beyond this.
        height: Its height at full width.
        identifier: Unique on the page.
        label: Label for screen readers.
    """

    def __init__(self, width: float, height: float, *, identifier: str, label: str) -> None:
        attributes = {"id": f"{identifier}-drawing", **root_attributes(f"0 0 {width:g} {height:g}", width, label, "plot")}
        self._root = ElementTree.Element("svg", attributes)

    def bar(self, left: float, top: float, width: float, height: float, *, colour: str) -> None:
        """A filled rectangle."""
        place = {"x": _pixels(left), "y": _pixels(top), "width": _pixels(width), "height": _pixels(height)}
        ElementTree.SubElement(self._root, "rect", {**place, "style": f"fill: {colour}"})

    def line(
        self, points: Sequence[tuple[float, float]], *, colour: str = INK, width: float = _LINE_WIDTH, more: str = ""
    ) -> None:
        """A line through points; ``more`` is put behind its style."""
        style = f"fill: none; stroke: {themed(colour)}; stroke-width: {width:g}{more}"
        places = " ".join(f"{_pixels(x)},{_pixels(y)}" for x, y in points)
        ElementTree.SubElement(self._root, "polyline", {"points": places, "style": style})

    def words(self, x: float, middle: float, text: str, *, size: float = SMALL_PIXELS, anchor: str = "start") -> None:
        """Words whose small letters have their middle at a height."""
        self._words(x, middle + _BASE_LINE * size, text, size=size, anchor=anchor)

    def counts_below(self, left: float, right: float, y: float, *, first: float, last: float, title: str) -> None:
        """The axis below a drawing, with whole numbers from ``first`` at ``left`` to ``last`` at ``right``."""
        self.line([(left, y), (right, y)])
        for tick in whole_ticks(last):
            if tick >= first:
                x = left + (right - left) * (tick - first) / max(last - first, 1)
                self.line([(x, y), (x, y + _TICK)])
                self._words(x, y + _TICK_WORDS, count(tick), size=SMALL_PIXELS, anchor="middle")
        self._words((left + right) / 2, y + _TITLE, title, size=FONT_PIXELS, anchor="middle")

    def counts_beside(self, x: float, top: float, bottom: float, *, last: float, title: str) -> None:
        """The axis left of a drawing, with whole numbers from 0 at ``bottom`` to ``last`` at ``top`` and an upright title."""
        self.line([(x, top), (x, bottom)])
        for tick in whole_ticks(last):
            y = bottom - (bottom - top) * tick / last
            self.line([(x - _TICK, y), (x, y)])
            self.words(x - _TICK - 4, y, count(tick), anchor="end")
        middle = (top + bottom) / 2
        self._words(FONT_PIXELS, middle, title, size=FONT_PIXELS, anchor="middle", turned=True)

    def _words(self, x: float, y: float, text: str, *, size: float, anchor: str, turned: bool = False) -> None:
        attributes = {"x": _pixels(x), "y": _pixels(y), "style": f"font-size: {size:g}px; text-anchor: {anchor}"}
        if turned:
            attributes["transform"] = f"rotate(-90 {_pixels(x)} {_pixels(y)})"
        ElementTree.SubElement(self._root, "text", attributes).text = visible(text)

    def markup(self) -> Markup:
        """The drawing; ElementTree escapes every text and attribute, so it can go into the page as it is."""
        return Markup(ElementTree.tostring(self._root, encoding="unicode", short_empty_elements=False))


def _pixels(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
