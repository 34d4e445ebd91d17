"""One quantity against another: a dot for each model, with both intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.style import CONTROL, CONTROL_ALPHA, INK, PAPER, SMALL_PIXELS, Mark
from crossgraft.report.plots.svg import draw

_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 12, 12, 50  # pixels


class Interval(NamedTuple):
    """A value and the ends of its interval; either end may be missing."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Point(NamedTuple):
    """One model: where it lies, how it is marked (None: a control) and what is written beside it."""

    x: Interval
    y: Interval
    mark: Mark | None
    label: str = ""


def scatter_figure(
    points: Sequence[Point],
    *,
    x_label: str,
    y_label: str,
    identifier: str,
    width: float = 300,
    height: float = 250,
) -> Markup:
    """Draw ``points``; those without both values are left out, which the caption has to say.

    Args:
        points: One for each model.
        x_label: Quantity and unit.
        y_label: Quantity and unit.
        identifier: Unique on the page.
        width: In CSS pixels.
        height: In CSS pixels.
    """

    def paint(figure: Figure) -> None:
        size = ((width - _LEFT - _RIGHT) / width, (height - _BOTTOM - _TOP) / height)
        axes = figure.add_axes((_LEFT / width, _BOTTOM / height, *size))
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.margins(0.08)
        for point in filter(is_drawable, points):
            _draw_point(axes, point)

    label = f"{y_label} against {x_label}, one dot a model."
    return draw(width, height, paint, identifier=identifier, label=label)


def is_drawable(point: Point) -> bool:
    """Does the point have both of its values?"""
    values = (point.x.value, point.y.value)
    return all(value is not None and math.isfinite(value) for value in values)


def _draw_point(axes: Axes, point: Point) -> None:
    mark = point.mark or CONTROL
    look: dict[str, Any] = {"color": mark.colour, "alpha": 1.0 if point.mark else CONTROL_ALPHA}
    (x, x_low, x_high), (y, y_low, y_high) = point.x, point.y
    faint = {"color": mark.colour, "alpha": 0.45, "linewidth": 1.0}
    if x_low is not None and x_high is not None:
        axes.plot([x_low, x_high], [y, y], **faint)
    if y_low is not None and y_high is not None:
        axes.plot([x, x], [y_low, y_high], **faint)
    axes.plot(x, y, mark.marker, color=PAPER, markersize=6, zorder=3)
    axes.plot(x, y, mark.marker, fillstyle="full" if point.mark else "none", markersize=6, zorder=4, **look)
    if point.label:
        axes.annotate(
            point.label,
            (x, y),
            xytext=(6, 5),
            textcoords="offset points",
            size=SMALL_PIXELS,
            color=INK,
            zorder=5,
        )
