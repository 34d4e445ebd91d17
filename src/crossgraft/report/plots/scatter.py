"""One quantity against another: a dot for each model, with both intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots._frame import frame
from crossgraft.report.plots._label_places import LabelPlaces, Spot
from crossgraft.report.plots.style import (
    CONTROL,
    CONTROL_ALPHA,
    INK,
    PAPER,
    PIXELS_PER_CHARACTER,
    SMALL_PIXELS,
    Mark,
    shortened,
)
from crossgraft.report.plots.svg import POINTS_PER_INCH, draw

_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 14, 34, 46  # pixels
_MARGIN = 0.08  # of an axis, on either side
TICK_STEPS = [1, 2, 2.5, 5, 10]


class Interval(NamedTuple):
    """A value and the ends of its interval; either end may be missing."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, or None when one is missing or not finite."""
        if self.low is None or self.high is None or not math.isfinite(self.high - self.low):
            return None
        return self.low, self.high


class Point(NamedTuple):
    """One model: where it lies, how it is marked (None: a control) and the rank written beside it, if any."""

    x: Interval
    y: Interval
    mark: Mark | None
    rank: int | None = None


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
        width: Width in CSS pixels.
        height: Height in CSS pixels.
    """

    def paint(figure: Figure) -> None:
        size = ((width - _LEFT - _RIGHT) / width, (height - _BOTTOM - _TOP) / height)
        axes = figure.add_axes((_LEFT / width, _BOTTOM / height, *size))
        axes.set_xlabel(x_label)
        # Across the top, not along the axis: room for a long name, and nobody has to turn their head.
        figure.text(4 / width, 1 - 4 / height, shortened(y_label, int(width / PIXELS_PER_CHARACTER)), va="top")
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=TICK_STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        axes.margins(_MARGIN)
        drawn = [*filter(is_drawable, points)]
        for point in drawn:
            _draw_point(axes, point)
        _set_frame(drawn, [point.x for point in drawn], axes.set_xlim)
        _set_frame(drawn, [point.y for point in drawn], axes.set_ylim)
        _draw_ranks(axes, drawn)

    label = f"{y_label} against {x_label}, one dot per model."
    return draw(width, height, paint, identifier=identifier, label=label)


def is_drawable(point: Point) -> bool:
    """Whether the point has both of its values."""
    values = (point.x.value, point.y.value)
    return all(value is not None and math.isfinite(value) for value in values)


def _set_frame(
    points: Sequence[Point], places: Sequence[Interval], set_limits: Callable[[float, float], object]
) -> None:
    """Around every value and the intervals of candidates; a far longer one of a control is cut off."""
    ends = [
        (point.mark is not None, end) for point, place in zip(points, places, strict=True) for end in place.ends or ()
    ]
    needed = [*(place.value for place in places), *(end for is_candidate, end in ends if is_candidate)]
    limits = frame(needed, [end for is_candidate, end in ends if not is_candidate])
    if limits is not None and limits[0] < limits[1]:
        margin = _MARGIN * (limits[1] - limits[0])
        set_limits(limits[0] - margin, limits[1] + margin)


def _draw_point(axes: Axes, point: Point) -> None:
    mark = point.mark or CONTROL
    x, y = point.x.value or 0.0, point.y.value or 0.0
    faint: dict[str, Any] = {"color": mark.colour, "alpha": 0.6, "linewidth": 1.0}
    if (ends := point.x.ends) is not None:
        axes.plot(ends, (y, y), **faint)
    if (ends := point.y.ends) is not None:
        axes.plot((x, x), ends, **faint)
    look: dict[str, Any] = {"color": mark.colour, "alpha": 1.0 if point.mark else CONTROL_ALPHA}
    axes.plot(x, y, mark.marker, color=PAPER, markersize=6, zorder=3)
    axes.plot(x, y, mark.marker, fillstyle="full" if point.mark else "none", markersize=6, zorder=4, **look)


def _draw_ranks(axes: Axes, drawn: Sequence[Point]) -> None:
    """Each rank near its dot, where it covers neither a dot nor another rank; a line leads to one that is further away."""
    scale = POINTS_PER_INCH / axes.get_figure().dpi  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    values = [(point.x.value or 0.0, point.y.value or 0.0) for point in drawn]
    spots = [Spot(*(float(each) * scale for each in axes.transData.transform(value))) for value in values]
    box = axes.get_window_extent()
    left, right, bottom, top = (float(edge) * scale for edge in (box.x0, box.x1, box.y0, box.y1))
    places = LabelPlaces(left=left, right=right, bottom=bottom, top=top, dots=spots)
    line = {"arrowstyle": "-", "color": INK, "alpha": 0.5, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 4}
    for point, value, spot in zip(drawn, values, spots, strict=True):
        if point.rank is None:
            continue
        x, y, is_far = places.place(spot, len(str(point.rank)) * PIXELS_PER_CHARACTER, SMALL_PIXELS)
        axes.annotate(
            str(point.rank),
            value,
            xytext=(x - spot.x, y - spot.y),
            textcoords="offset points",
            ha="left",
            va="bottom",
            size=SMALL_PIXELS,
            zorder=5,
            arrowprops=line if is_far else None,
        )
