"""One look for every figure: the Okabe–Ito palette, quiet axes, and ink that follows the page's theme."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

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
