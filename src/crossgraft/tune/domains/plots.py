"""Domains that training never saw, beside those that it saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crossgraft.report.plots.intervals import BELOW_PIXELS, axes_of_rows
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.plots.svg import INK, OKABE_ITO, PAPER, SMALL_PIXELS, draw, shortened
from crossgraft.words.formatting import NumberFormat

_WIDTH, _ROW, _TOP = 400, 50, 28  # pixels
_UNSEEN, _SEEN = (OKABE_ITO[0], "o"), (OKABE_ITO[1], "s")
_AT = (0.12, 0.30)
"""Where the two lines of a row lie below its middle."""


class DomainRow(NamedTuple):
    """One domain, or the mean over all."""

    name: str
    unseen: Interval
    seen: Interval | None


def domains_figure(rows: Sequence[DomainRow], *, x_label: str, identifier: str, guess: float | None = None) -> Markup:
    """Draw in each row two dots with their lines: the domain that was not seen above images of those that were.

    Args:
        rows: Rows from top to bottom.
        x_label: Quantity and unit.
        identifier: Unique on the page.
        guess: What guessing gives, which a line marks.
    """
    height = _TOP + _ROW * len(rows) + BELOW_PIXELS
    as_text = NumberFormat.for_column(
        [row.unseen.value for row in rows],
        interval_widths=[ends[1] - ends[0] for row in rows if (ends := row.unseen.ends) is not None],
    )

    def paint(figure: Figure) -> None:
        axes = axes_of_rows(figure, len(rows), row_pixels=_ROW, figure_pixels=(_WIDTH, height), x_label=x_label)
        if guess is not None:
            axes.axvline(guess, color=INK, alpha=0.5, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        across = axes.get_yaxis_transform()
        for position, row in enumerate(rows):
            axes.text(0, position - 0.22, shortened(row.name, 36), transform=across, va="center")
            seen = "" if row.seen is None or row.seen.value is None else f" · {as_text(row.seen.value)}"
            shown = "no value" if row.unseen.value is None else as_text(row.unseen.value)
            axes.text(1, position - 0.22, shown + seen, transform=across, va="center", ha="right", size=SMALL_PIXELS)
            for below, (colour, marker), value in zip(_AT, (_UNSEEN, _SEEN), (row.unseen, row.seen), strict=True):
                at = position + below
                if value is None or value.value is None:
                    continue
                if (ends := value.ends) is not None:
                    axes.plot(ends, (at, at), color=colour, linewidth=1.8, solid_capstyle="butt")
                axes.plot(value.value, at, marker, color=PAPER, zorder=3)
                axes.plot(value.value, at, marker, color=colour, zorder=4)
        entries = [(_UNSEEN, "never seen")] + ([(_SEEN, "seen")] if any(row.seen is not None for row in rows) else [])
        handles = [Line2D([], [], color=colour, marker=marker, linestyle="none") for (colour, marker), _ in entries]
        figure.legend(
            handles,
            [name for _, name in entries],
            loc="upper left",
            bbox_to_anchor=(0, 1),
            ncols=2,
            handletextpad=0.2,
            borderaxespad=0.2,
        )

    names = ", ".join(row.name for row in rows)
    return draw(_WIDTH, height, paint, identifier=identifier, label=f"{x_label} with intervals, never seen and seen: {names}.")
