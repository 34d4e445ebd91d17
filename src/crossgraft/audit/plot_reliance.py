"""AUC where an artefact goes with the class and where it goes against it, by the share of positives that carry it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from crossgraft.report.plots.scatter import Interval
from crossgraft.report.plots.style import INK, OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 62, 26, 46  # pixels; names of curves stand at the right
CHANCE = 0.5


class RelianceCurve(NamedTuple):
    """One model with one artefact.

    Attributes:
        name: Title above the curves.
        shares: From 0 on.
        iid: AUC on images like those of training, by share.
        ood: AUC where the artefact goes against the class.
    """

    name: str
    shares: Sequence[float]
    iid: Sequence[Interval]
    ood: Sequence[Interval]


def reliance_figure(curve: RelianceCurve, *, identifier: str, width: float = 330, height: float = 260) -> Markup:
    """Both curves with their intervals, chance, and a model that sees nothing but the artefact.

    Args:
        curve: The model and the artefact.
        identifier: Unique on the page.
        width: Width in CSS pixels.
        height: Height in CSS pixels.
    """
    shares = np.array(curve.shares)

    def paint(figure: Figure) -> None:
        size = ((width - _LEFT - _RIGHT) / width, (height - _BOTTOM - _TOP) / height)
        axes = figure.add_axes((_LEFT / width, _BOTTOM / height, *size))
        axes.set(xlim=(0, float(shares[-1])), ylim=(-0.02, 1.02), xlabel="Share of positives with the artefact")
        axes.set_ylabel("AUC")
        axes.xaxis.set_major_locator(FixedLocator([0, 0.2, 0.5, 0.8, 1]))
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        figure.text(4 / width, 1 - 4 / height, shortened(curve.name, int(width / PIXELS_PER_CHARACTER)), va="top")
        axes.axhline(CHANCE, color=INK, alpha=0.3, linewidth=0.8)
        _draw_pure(axes, shares)
        ends: list[tuple[float, str, str]] = []
        for intervals, colour, name in ((curve.iid, OKABE_ITO[0], "i.i.d."), (curve.ood, OKABE_ITO[1], "o.o.d.")):
            ends.append((_draw_curve(axes, shares, intervals, colour), name, colour))
        for place, name, colour in _apart(ends):
            axes.annotate(
                name,
                (float(shares[-1]), place),
                xytext=(5, 0),
                textcoords="offset points",
                color=colour,
                va="center",
                annotation_clip=False,
            )

    last = [intervals[-1].value for intervals in (curve.iid, curve.ood)]
    said = ", ".join("unknown" if value is None else f"{value:.2f}" for value in last)
    return draw(
        width,
        height,
        paint,
        identifier=identifier,
        label=f"{curve.name}: AUC by share; at the largest share i.i.d. and o.o.d. {said}.",
    )


def _draw_curve(axes: Axes, shares: np.ndarray, intervals: Sequence[Interval], colour: str) -> float:
    """The curve with its band; gives its last value."""
    values = np.array([np.nan if each.value is None else each.value for each in intervals])
    low = np.array([value if each.low is None else each.low for each, value in zip(intervals, values, strict=True)])
    high = np.array([value if each.high is None else each.high for each, value in zip(intervals, values, strict=True)])
    axes.fill_between(shares, np.clip(low, 0, 1), np.clip(high, 0, 1), color=colour, alpha=0.18, linewidth=0)
    axes.plot(shares, values, "o-", color=colour, markersize=4, linewidth=1.6, clip_on=False)
    return float(values[-1])


def _draw_pure(axes: Axes, shares: np.ndarray) -> None:
    """A model that sees nothing but the artefact."""
    pure = np.where(shares > 0, 0.0, CHANCE)
    for values in (CHANCE + shares / 2, pure):
        axes.plot(shares, values, color=INK, alpha=0.45, linewidth=1, linestyle=(0, (2, 2)))
    axes.text(float(shares[-1]) * 0.98, 0.03, "artefact alone", ha="right", va="bottom", size=SMALL_PIXELS, alpha=0.6)


def _apart(ends: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Names that do not cover each other."""
    (first, *of_first), (second, *of_second) = ends
    if abs(first - second) < 0.08:
        middle = (first + second) / 2
        first, second = (middle + 0.045, middle - 0.045) if first >= second else (middle - 0.045, middle + 0.045)
    return [(first, of_first[0], of_first[1]), (second, of_second[0], of_second[1])]
