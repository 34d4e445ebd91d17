"""Several values with their intervals, one per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.scatter import TICK_STEPS, Interval
from crossgraft.report.plots.style import INK, OKABE_ITO, PAPER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw
from crossgraft.words.formatting import NumberFormat

_WIDTH = 400
_ROW_HEIGHT = 42
_BELOW = 48
_SIDE = 14


class IntervalRow(NamedTuple):
    """A value under its name; a row that stands for all others is drawn as a square of another colour."""

    name: str
    value: Interval
    is_overall: bool = False


def intervals_figure(
    rows: Sequence[IntervalRow], *, x_label: str, identifier: str, marked: float | None = None
) -> Markup:
    """Draw a dot and a line per row, its name above, its value on the right.

    Args:
        rows: Rows from top to bottom; those without a value say so.
        x_label: Quantity and unit.
        identifier: Unique on the page.
        marked: A value that a line marks, such as no difference.
    """
    height = _ROW_HEIGHT * len(rows) + _BELOW + 6
    as_text = NumberFormat.for_column(
        [row.value.value for row in rows],
        interval_widths=[ends[1] - ends[0] for row in rows if (ends := row.value.ends) is not None],
    )

    def paint(figure: Figure) -> None:
        size = ((_WIDTH - 2 * _SIDE) / _WIDTH, _ROW_HEIGHT * len(rows) / height)
        axes = figure.add_axes((_SIDE / _WIDTH, _BELOW / height, *size))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(x_label)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        axes.margins(x=0.06)
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
