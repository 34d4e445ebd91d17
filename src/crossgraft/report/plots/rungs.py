"""The rungs of a selection: which models were tried in each, what val said, and who went on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossgraft.report.plots.style import INK, OKABE_ITO, PAPER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_ROW_HEIGHT, _ABOVE, _SIDE = 44, 62, 10


class RungColumn(NamedTuple):
    """One rung: what was done, in one or two short lines, and what it cost."""

    title: str
    cost: str


class ClimbingModel(NamedTuple):
    """One model: what each rung showed of it; None where it was not in it, nan where it failed."""

    name: str
    values: Sequence[float | None]
    is_selected: bool = False


def rungs_figure(
    columns: Sequence[RungColumn], models: Sequence[ClimbingModel], *, identifier: str, width: int = 640
) -> Markup:
    """Draw a column per rung and a row per model, its name above its dots.

    Args:
        columns: Rungs from left to right.
        models: Rows from top to bottom.
        identifier: Unique on the page.
        width: Width in pixels.
    """
    height = _ABOVE + _ROW_HEIGHT * len(models) + 6
    last = max(len(columns) - 1, 1)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((_SIDE / width, 6 / height, 1 - 2 * _SIDE / width, _ROW_HEIGHT * len(models) / height))
        axes.set_ylim(len(models) - 0.5, -0.5)
        axes.set_xlim(-0.35, last + 0.65)
        axes.set_axis_off()
        for place, column in enumerate(columns):
            top = 1 + 10 / (_ROW_HEIGHT * len(models))
            text = f"{column.title}\n{column.cost}"
            axes.text(
                place, top, text, transform=axes.get_xaxis_transform(), ha="center", va="bottom", size=SMALL_PIXELS
            )
            axes.axvline(place, color=INK, alpha=0.08, linewidth=0.8, zorder=0)
        for row, model in enumerate(models):
            _paint_row(axes, row, model, width)

    names = ", ".join(model.name for model in models)
    return draw(width, height, paint, identifier=identifier, label=f"What each rung showed of {names}.")


def _paint_row(axes: Axes, row: int, model: ClimbingModel, width: int) -> None:
    at = row + 0.22
    colour = OKABE_ITO[1] if model.is_selected else OKABE_ITO[0]
    weight = "bold" if model.is_selected else "normal"
    name = shortened(model.name, int(width / 8.2))
    axes.text(0, row - 0.2, name, transform=axes.get_yaxis_transform(), va="center", weight=weight)
    axes.axhline(row + 0.5, color=INK, alpha=0.12, linewidth=0.8, zorder=0)
    places = [place for place, value in enumerate(model.values) if value is not None]
    if not places:
        axes.text(
            1,
            at,
            "not tried",
            transform=axes.get_yaxis_transform(),
            ha="right",
            va="center",
            size=SMALL_PIXELS,
            alpha=0.7,
        )
        return
    axes.plot(places, [at] * len(places), color=colour, linewidth=1.6, alpha=0.6, zorder=1)
    for place in places:
        value = model.values[place]
        if value is None:
            continue
        has_failed = value != value
        marker = "X" if has_failed else "s" if model.is_selected else "o"
        axes.plot(place, at, marker, color=PAPER, markersize=10, zorder=2)
        axes.plot(place, at, marker, color=colour, zorder=3)
        text = "failed" if has_failed else f"{value:.3f}".replace("-", "\N{MINUS SIGN}")
        rim = {"facecolor": PAPER, "edgecolor": "none", "pad": 1.5}
        axes.text(place + 0.06, at, text, ha="left", va="center", size=SMALL_PIXELS, zorder=4, bbox=rim)
