"""Turn a matplotlib figure into an SVG that lives inside a page: themed, byte-stable, with ids of its own."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable

# The tree is matplotlib's own output, never a user's file, so the standard parser is safe here.
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from crossgraft.report.plots.style import INK, PAPER, SETTINGS
from crossgraft.words.visible import visible

POINTS_PER_INCH = 72  # matplotlib writes an SVG in points; one point becomes one CSS pixel here
_HREF = "{http://www.w3.org/1999/xlink}href"
# Older matplotlib writes one ``font`` property, newer ones ``font-size`` and ``font-family``.
_FONT = re.compile(r"font: (?:[a-z0-9]+ )*?([\d.]+px) [^;]*")
_FONT_FAMILY = re.compile(r"font-family: [^;]*;? ?")
_ID_REFERENCE = re.compile(r"url\(#")


def draw(
    width: float,
    height: float,
    paint: Callable[[Figure], None],
    *,
    identifier: str,
    label: str,
    is_filled: bool = False,
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


def _inline(svg: str, *, width: float, identifier: str, label: str, look: str) -> Markup:
    root = ElementTree.fromstring(svg)
    for parent in root.iter():
        for child in list(parent):
            if child.tag.endswith(("}metadata", "}style")):  # a global style sheet would reach the whole page
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]  # HTML knows svg elements without a namespace
        element.attrib.update({name: _themed(value, identifier) for name, value in element.attrib.items()})
        if "id" in element.attrib:
            element.attrib["id"] = f"{identifier}-{element.attrib['id']}"
        if _HREF in element.attrib:
            element.attrib["href"] = f"#{identifier}-{element.attrib.pop(_HREF)[1:]}"
    root.attrib = {
        "class": look,
        "viewBox": root.attrib["viewBox"],
        "style": f"max-width: {width:g}px",
        "fill": "currentColor",
        "role": "img",
        "aria-label": visible(label),
    }
    # ElementTree escapes every text and attribute, so the result can go into the page as it is.
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=False))


def _themed(value: str, identifier: str) -> str:
    """Black becomes the colour of the text around, the paper colour the page's; fonts are the page's own."""
    value = value.replace(INK, "currentColor").replace(PAPER, "var(--paper)")
    value = _FONT_FAMILY.sub("", _FONT.sub(r"font-size: \1", value))
    return _ID_REFERENCE.sub(f"url(#{identifier}-", value)
