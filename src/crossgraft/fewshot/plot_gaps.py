"""Accuracy over the gap between images and prototypes, where it is set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crossgraft.fewshot.gaps import AS_IT_IS
from crossgraft.fewshot.record import GapSummary, Moved
from crossgraft.report.plots.svg import OKABE_ITO, PAPER, SMALL_PIXELS, draw, shortened

_WIDE, _NARROW = 828, 340  # pixels
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM, _LINE = 280, 62, 14, 26, 46, 18
_TITLES: dict[Moved, str] = {"features": "Images and prototypes moved", "maps": "CoPA: both maps moved apart"}
_ACROSS: dict[Moved, str] = {"features": "Shift, in gaps (−1 closes it)", "maps": "Share of their difference (0: one map)"}
_MARKERS = "osD^vP"
_LONGEST_NAME = 34


def gaps_figure(points: Sequence[GapSummary], *, identifier: str, is_wide: bool = True) -> Markup:
    """Accuracy of each head over its gap: features moved along the gap, and beside it the maps of CoPA moved apart.

    Args:
        points: Means over episodes.
        identifier: Unique on the page.
        is_wide: Whether panels stand beside each other, or below.
    """
    panels: list[Moved] = [moved for moved in _TITLES if any(point.moved == moved for point in points)]
    heads = list(dict.fromkeys(point.head for point in points))
    width = _WIDE if is_wide else _NARROW
    legend = 6 + _LINE * (1 if is_wide and len(heads) <= 4 else len(heads))
    height = legend + _HEIGHT * (1 if is_wide else len(panels))
    panel = width / len(panels) if is_wide else width

    def paint(figure: Figure) -> None:
        for place, moved in enumerate(panels):
            left = (panel * place if is_wide else 0) + _LEFT
            bottom = height - legend - _HEIGHT * (1 if is_wide else place + 1) + _BOTTOM
            size = (panel - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
            axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
            _draw_panel(axes, moved, [point for point in points if point.moved == moved], heads)
        handles = [Line2D([], [], **_look(heads.index(head))) for head in heads]
        names = [f"{shortened(head, _LONGEST_NAME)} (gap {_usual(points, head, 'features').gap:.2f})" for head in heads]
        figure.legend(
            handles,
            names,
            loc="upper left",
            bbox_to_anchor=(0, 1),
            ncols=len(heads) if is_wide and len(heads) <= 4 else 1,
            borderaxespad=0,
            fontsize=SMALL_PIXELS,
        )

    return draw(width, height, paint, identifier=identifier, label="Accuracy on queries over the gap of images and prototypes.")


def _usual(points: Sequence[GapSummary], head: str, moved: Moved) -> GapSummary:
    return next(point for point in points if (point.head, point.moved, point.at) == (head, moved, AS_IT_IS[moved]))


def _look(number: int) -> dict[str, Any]:
    colour = OKABE_ITO[number % len(OKABE_ITO)]
    return {"color": colour, "marker": _MARKERS[number % len(_MARKERS)], "markersize": 4.5, "linewidth": 1.4}


def _draw_panel(axes: Axes, moved: Moved, points: Sequence[GapSummary], heads: Sequence[str]) -> None:
    axes.set_title(_TITLES[moved], loc="left", pad=6)
    axes.set_xlabel(_ACROSS[moved], fontsize=SMALL_PIXELS, labelpad=3)
    axes.set_ylabel("Accuracy on queries", fontsize=SMALL_PIXELS, labelpad=3)
    for setter in (axes.xaxis, axes.yaxis):
        setter.set_major_locator(MaxNLocator(5))
    for number, head in enumerate(heads):
        own = [point for point in points if point.head == head]
        if not own:
            continue
        look = _look(number)
        axes.plot([point.at for point in own], [point.accuracy for point in own], **look)
        usual = _usual(own, head, moved)
        axes.plot(
            [usual.at], [usual.accuracy], look["marker"], color=look["color"], markerfacecolor=PAPER, markersize=8, zorder=3
        )
    axes.margins(0.06)
