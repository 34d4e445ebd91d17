"""How sure a model is of its answers."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.style import INK, OKABE_ITO
from crossgraft.report.plots.svg import draw

_WIDTH, _HEIGHT = 400, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 30, 46
_BINS = 20


def certainty_figure(certainties: Sequence[float], *, x_label: str, lowest: float, identifier: str) -> Markup:
    """Draw how many images have which certainty.

    Args:
        certainties: One per image.
        x_label: Quantity and unit.
        lowest: The least certainty there can be, in [0, 1); the most is 1.
        identifier: Unique on the page.
    """

    def paint(figure: Figure) -> None:
        size = ((_WIDTH - _LEFT - _RIGHT) / _WIDTH, (_HEIGHT - _BOTTOM - _TOP) / _HEIGHT)
        axes = figure.add_axes((_LEFT / _WIDTH, _BOTTOM / _HEIGHT, *size))
        figure.text(4 / _WIDTH, 1 - 4 / _HEIGHT, "Images", va="top")
        axes.set_xlabel(x_label)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlim(0, 1)
        if lowest > 0:
            axes.axvspan(0, lowest, color=INK, alpha=0.07, linewidth=0)
        axes.hist(list(certainties), bins=_BINS, range=(0, 1), color=OKABE_ITO[0], rwidth=0.86)

    label = f"{x_label} of {len(certainties)} images as a histogram."
    return draw(_WIDTH, _HEIGHT, paint, identifier=identifier, label=label)
