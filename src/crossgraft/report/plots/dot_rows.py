"""Several numbers of each network on one axis that begins at 0, one row per network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.scatter import TICK_STEPS
from crossgraft.report.plots.style import INK, PAPER, SMALL_PIXELS, family_marks, shortened
from crossgraft.report.plots.svg import draw
from crossgraft.words.formatting import NumberFormat

_WIDE, _ROW, _TOP, _BELOW, _SIDE = 560, 44, 30, 48, 14  # pixels


class DotRow(NamedTuple):
    """One network: its name and a number for each series, None where there is none."""

    name: str
    values: Sequence[float | None]


def dot_rows_figure(
    rows: Sequence[DotRow], series: Sequence[str], *, x_label: str, identifier: str, width: float = _WIDE
) -> Markup:
    """Draw ``rows`` from top to bottom, the name and the first number above each line.

    Args:
        rows: Networks, each with one number for each series.
        series: What the numbers are, for the legend.
        x_label: Quantity and unit.
        identifier: Unique on the page.
        width: Width in CSS pixels.
    """
    height = _TOP + _ROW * len(rows) + _BELOW
    known = [value for row in rows for value in row.values if value is not None and math.isfinite(value)]
    as_text = NumberFormat.for_column(known)
    marks = list(family_marks(series).values())
    characters = int((width - 120) / 7.2)

    def paint(figure: Figure) -> None:
        size = ((width - 2 * _SIDE) / width, _ROW * len(rows) / height)
        axes = figure.add_axes((_SIDE / width, _BELOW / height, *size))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, 1.06 * max(known, default=1.0) or 1.0)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        across = axes.get_yaxis_transform()
        for position, row in enumerate(rows):
            at = position + 0.22
            axes.axhline(at, color=INK, alpha=0.12, linewidth=0.8, zorder=0)
            axes.text(0, position - 0.18, shortened(row.name, characters), transform=across, va="center")
            shown = " · ".join(as_text(value) for value in row.values if value is not None)
            axes.text(1, position - 0.18, shown, transform=across, va="center", ha="right", size=SMALL_PIXELS)
            for value, mark in zip(row.values, marks, strict=True):
                if value is not None and math.isfinite(value):
                    look: dict[str, Any] = {
                        "color": mark.colour,
                        "markeredgecolor": PAPER,
                        "markeredgewidth": 0.8,
                        "clip_on": False,
                    }
                    axes.plot(value, at, mark.marker, zorder=4, **look)
        handles = [Line2D([], [], color=mark.colour, marker=mark.marker, linestyle="none") for mark in marks]
        figure.legend(
            handles,
            list(series),
            loc="upper left",
            bbox_to_anchor=(0, 1),
            ncols=len(series),
            handletextpad=0.2,
            borderaxespad=0.2,
        )

    names = ", ".join(row.name for row in rows)
    return draw(width, height, paint, identifier=identifier, label=f"{x_label}: {', '.join(series)} of {names}.")
