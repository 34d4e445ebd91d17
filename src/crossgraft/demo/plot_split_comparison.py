"""Accuracy of one probe under two ways to split the same images."""

from __future__ import annotations

from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure

from crossgraft.demo.record import SplitComparison
from crossgraft.report.plots.svg import OKABE_ITO, PAPER, SMALL_PIXELS, draw

_WIDTH = 400
_ROW_HEIGHT = 50
_BELOW = 48


class _Row(NamedTuple):
    name: str
    accuracy: float
    low: float
    high: float
    colour: str
    marker: str


def split_figure(comparison: SplitComparison, *, identifier: str) -> Markup:
    """Draw both accuracies with their intervals, each under its name.

    Args:
        comparison: The two ways to split.
        identifier: Unique on the page.
    """
    shuffled = (comparison.shuffled_accuracy, comparison.shuffled_low, comparison.shuffled_high)
    grouped = (comparison.grouped_accuracy, comparison.grouped_low, comparison.grouped_high)
    rows = (
        _Row("Shuffled: a group may be on both sides", *shuffled, OKABE_ITO[1], "s"),
        _Row("Grouped: every test group is new", *grouped, OKABE_ITO[0], "o"),
    )
    height = _ROW_HEIGHT * len(rows) + _BELOW + 6

    def paint(figure: Figure) -> None:
        size = ((_WIDTH - 36) / _WIDTH, _ROW_HEIGHT * len(rows) / height)
        axes = figure.add_axes((12 / _WIDTH, _BELOW / height, *size))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"Accuracy of {comparison.probe} (fraction)")
        axes.margins(x=0.06)
        for position, row in enumerate(rows):
            at = position + 0.2
            axes.plot([row.low, row.high], [at, at], color=row.colour, linewidth=1.8, solid_capstyle="butt")
            axes.plot(row.accuracy, at, row.marker, color=PAPER, zorder=3)
            axes.plot(row.accuracy, at, row.marker, color=row.colour, zorder=4)
            axes.text(0, position - 0.2, row.name, transform=axes.get_yaxis_transform(), va="center")
            axes.text(
                1,
                position - 0.2,
                f"{row.accuracy:.3f}",
                transform=axes.get_yaxis_transform(),
                va="center",
                ha="right",
                size=SMALL_PIXELS,
            )

    label = f"Accuracy of {comparison.probe} on a shuffled and on a grouped split, with intervals."
    return draw(_WIDTH, height, paint, identifier=identifier, label=label)
