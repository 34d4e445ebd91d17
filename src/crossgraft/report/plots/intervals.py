"""Several values with their intervals, one per row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.scatter import TICK_STEPS, Interval
from crossgraft.report.plots.svg import (
    INK,
    OKABE_ITO,
    PAPER,
    PIXELS_PER_CHARACTER,
    SMALL_PIXELS,
    draw,
    family_marks,
    framed_axes,
    shortened,
)
from crossgraft.words.formatting import NumberFormat

_CERTAINTY_WIDTH, _HEIGHT = 400, 230
_MARGINS = (46, 14, 30, 46)
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
        axes = framed_axes(figure, _CERTAINTY_WIDTH, _HEIGHT, _MARGINS, title="Images", x_label=x_label)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.set_xlim(0, 1)
        if lowest > 0:
            axes.axvspan(0, lowest, color=INK, alpha=0.07, linewidth=0)
        axes.hist(list(certainties), bins=_BINS, range=(0, 1), color=OKABE_ITO[0], rwidth=0.86)

    label = f"{x_label} of {len(certainties)} images as a histogram."
    return draw(_CERTAINTY_WIDTH, _HEIGHT, paint, identifier=identifier, label=label)


_ROW, _DOT_ROWS_TOP = 44, 30  # pixels
_LEGEND_ROW, _LEGEND_MARK = 18, 34


class DotRow(NamedTuple):
    """One network: its name and a number for each series, None where there is none."""

    name: str
    values: Sequence[float | None]


def dot_rows_figure(
    rows: Sequence[DotRow], series: Sequence[str], *, x_label: str, identifier: str, is_wide: bool = True
) -> Markup:
    """Draw ``rows`` from top to bottom, the name and the first number above each line.

    Args:
        rows: Networks, each with one number for each series.
        series: What the numbers are, for the legend.
        x_label: Quantity and unit.
        identifier: Unique on the page.
        is_wide: Else for the screen of a phone.
    """
    width = 560 if is_wide else 340
    needed = [len(name) * SMALL_PIXELS * 0.55 + _LEGEND_MARK for name in series]
    columns = len(series) if sum(needed) <= width else max(1, int(width // max(needed)))
    top = _DOT_ROWS_TOP + _LEGEND_ROW * (math.ceil(len(series) / columns) - 1)
    height = top + _ROW * len(rows) + BELOW_PIXELS
    known = [value for row in rows for value in row.values if value is not None and math.isfinite(value)]
    as_text = NumberFormat.for_column(known)
    marks = list(family_marks(series).values())
    characters = int((width - 120) / 7.2)

    def paint(figure: Figure) -> None:
        axes = axes_of_rows(figure, len(rows), row_pixels=_ROW, figure_pixels=(width, height), x_label=x_label)
        axes.set_xlim(0, 1.06 * max(known, default=1.0) or 1.0)
        across = axes.get_yaxis_transform()
        for position, row in enumerate(rows):
            at = position + 0.22
            axes.axhline(at, color=INK, alpha=0.12, linewidth=0.8, zorder=0)
            axes.text(0, position - 0.18, shortened(row.name, characters), transform=across, va="center")
            shown = " · ".join(as_text(value) for value in row.values if value is not None)
            if (len(row.name) + len(shown)) * PIXELS_PER_CHARACTER > width - 2 * _SIDE:
                shown = ""  # the table has them
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
            handles, list(series), loc="upper left", bbox_to_anchor=(0, 1), ncols=columns, handletextpad=0.2, borderaxespad=0.2
        )

    names = ", ".join(row.name for row in rows)
    return draw(width, height, paint, identifier=identifier, label=f"{x_label}: {', '.join(series)} of {names}.")


_WIDTH = 400
_ROW_HEIGHT = 42
BELOW_PIXELS = 48
"""Below the rows: the scale and its name."""
_SIDE = 14


def axes_of_rows(figure: Figure, num_rows: int, *, row_pixels: float, figure_pixels: tuple[float, float], x_label: str) -> Axes:
    """Axes at the lower end of a figure: a row is one unit high, the first row, at 0, is the highest, and none has a tick."""
    width, height = figure_pixels
    size = ((width - 2 * _SIDE) / width, row_pixels * num_rows / height)
    axes = figure.add_axes((_SIDE / width, BELOW_PIXELS / height, *size))
    axes.set_ylim(num_rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(x_label)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
    axes.margins(x=0.06)
    return axes


class IntervalRow(NamedTuple):
    """A value under its name; a row that stands for all others is drawn as a square of another colour."""

    name: str
    value: Interval
    is_overall: bool = False


def intervals_figure(rows: Sequence[IntervalRow], *, x_label: str, identifier: str, marked: float | None = None) -> Markup:
    """Draw a dot and a line per row, its name above, its value on the right.

    Args:
        rows: Rows from top to bottom; those without a value say so.
        x_label: Quantity and unit.
        identifier: Unique on the page.
        marked: A value that a line marks, such as no difference.
    """
    height = _ROW_HEIGHT * len(rows) + BELOW_PIXELS + 6
    as_text = NumberFormat.for_column(
        [row.value.value for row in rows],
        interval_widths=[ends[1] - ends[0] for row in rows if (ends := row.value.ends) is not None],
    )

    def paint(figure: Figure) -> None:
        axes = axes_of_rows(figure, len(rows), row_pixels=_ROW_HEIGHT, figure_pixels=(_WIDTH, height), x_label=x_label)
        if marked is not None:
            axes.axvline(marked, color=INK, alpha=0.4, linewidth=0.8, zorder=1)
        across = axes.get_yaxis_transform()
        for position, row in enumerate(rows):
            at = position + 0.2
            colour, marker = (OKABE_ITO[1], "s") if row.is_overall else (OKABE_ITO[0], "o")
            axes.axhline(at, color=INK, alpha=0.12, linewidth=0.8, zorder=0)
            axes.text(0, position - 0.2, shortened(row.name, 42), transform=across, va="center")
            shown = "no value" if row.value.value is None else as_text(row.value.value)
            axes.text(1, position - 0.2, shown, transform=across, va="center", ha="right", size=SMALL_PIXELS)
            if row.value.value is None:
                continue
            if (ends := row.value.ends) is not None:
                axes.plot(ends, (at, at), color=colour, linewidth=1.8, solid_capstyle="butt")
            axes.plot(row.value.value, at, marker, color=PAPER, zorder=3)
            axes.plot(row.value.value, at, marker, color=colour, zorder=4)

    names = ", ".join(row.name for row in rows)
    return draw(_WIDTH, height, paint, identifier=identifier, label=f"{x_label} with intervals: {names}.")
