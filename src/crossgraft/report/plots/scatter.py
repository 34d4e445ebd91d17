"""One quantity against another: a dot for each model, with both intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.svg import (
    CONTROL,
    CONTROL_ALPHA,
    INK,
    PAPER,
    PIXELS_PER_CHARACTER,
    POINTS_PER_INCH,
    SMALL_PIXELS,
    Mark,
    draw,
    frame,
    framed_axes,
)

_DOT = 5.0  # half a dot with some air, in pixels
_NEAR, _DISTANCES = 7.0, (7.0, 14.0, 24.0, 36.0, 50.0, 66.0, 84.0, 104.0, 126.0)
_DIRECTIONS = 16
_FAR = 0.01  # a pixel away from the dot
_STILL_READ = 1.2  # nothing is covered but a piece of a line, and the dot is not far
_ON_A_LINE = 0.35  # a name over a line is still read; one over a dot or a name is not


class Spot(NamedTuple):
    """A place on the figure, in pixels."""

    x: float
    y: float


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: _Box) -> bool:
        return self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top


@dataclass
class LabelPlaces:
    """The room inside the axes, in pixels, and what stands there already.

    Attributes:
        left: Left edge of the axes.
        right: Right edge of the axes.
        bottom: Bottom edge of the axes.
        top: Top edge of the axes.
        dots: That no name may cover.
        avoided: Points of lines, which names had better not cover.
    """

    left: float
    right: float
    bottom: float
    top: float
    dots: Sequence[Spot]
    avoided: Sequence[Spot] = ()
    _taken: list[_Box] = field(default_factory=list[_Box])

    def place(self, dot: Spot, width: float, height: float) -> tuple[float, float, bool]:
        """Lower left corner of the name of ``dot``, and whether it is so far away that a line has to lead there."""
        best: tuple[float, _Box, bool] | None = None
        for distance in _DISTANCES:
            for number in range(_DIRECTIONS):
                box = _box_at(dot, 2 * math.pi * number / _DIRECTIONS, distance, width, height)
                penalty = self._penalty(box) + _FAR * distance
                if best is None or penalty < best[0]:
                    best = penalty, box, distance > _NEAR
            if best is not None and best[0] < _STILL_READ:
                break  # nothing is covered; further away is no better
        box = best[1] if best is not None else _Box(dot.x, dot.y, dot.x, dot.y)
        self._taken.append(box)
        return box.left, box.bottom, best is not None and best[2]

    def _penalty(self, box: _Box) -> float:
        outside = max(0.0, self.left - box.left, box.right - self.right - 14, self.bottom - box.bottom, box.top - self.top)
        covered = sum(box.overlaps(taken) for taken in self._taken)
        covered += sum(box.overlaps(_Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT)) for x, y in self.dots)
        lines = sum(box.overlaps(_Box(x - 1, y - 1, x + 1, y + 1)) for x, y in self.avoided)
        return 10.0 * (outside > 0) + outside + 4.0 * covered + _ON_A_LINE * lines


def _box_at(dot: Spot, angle: float, distance: float, width: float, height: float) -> _Box:
    """The box whose edge is ``distance`` away from ``dot`` in this direction; 0 is to the right."""
    x, y = math.cos(angle), math.sin(angle)
    middle_x = dot.x + x * (distance + width / 2)
    middle_y = dot.y + y * (distance + height / 2)
    return _Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)


_MARGINS = (48, 14, 34, 46)
_MARGIN = 0.08  # of an axis, on either side
TICK_STEPS = [1, 2, 2.5, 5, 10]


class _HasInterval(Protocol):
    """A record of a value with the ends of its interval, each of which may be missing."""

    @property
    def value(self) -> float | None: ...

    @property
    def low(self) -> float | None: ...

    @property
    def high(self) -> float | None: ...


class Interval(NamedTuple):
    """A value and the ends of its interval; either end may be missing."""

    value: float | None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, measured: _HasInterval | None) -> Interval:
        """As it was recorded; None was not measured."""
        return cls(None) if measured is None else cls(measured.value, measured.low, measured.high)

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, or None when one is missing or not finite."""
        if self.low is None or self.high is None or not math.isfinite(self.high - self.low):
            return None
        return self.low, self.high


class Point(NamedTuple):
    """One model: where it lies, how it is marked (None: a control), and its name or rank, if one is written beside it."""

    x: Interval
    y: Interval
    mark: Mark | None
    rank: int | None = None
    name: str | None = None

    @property
    def text(self) -> str | None:
        """What is written beside it."""
        return self.name or (None if self.rank is None else str(self.rank))


def scatter_figure(
    points: Sequence[Point], *, x_label: str, y_label: str, identifier: str, width: float = 300, height: float = 250
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
        axes = framed_axes(figure, width, height, _MARGINS, title=y_label, x_label=x_label)
        axes.xaxis.set_major_locator(MaxNLocator(4, steps=TICK_STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        axes.margins(_MARGIN)
        drawn = [*filter(is_drawable, points)]
        for point in drawn:
            _draw_point(axes, point)
        _set_frame(drawn, [point.x for point in drawn], axes.set_xlim)
        _set_frame(drawn, [point.y for point in drawn], axes.set_ylim)
        _draw_texts(axes, drawn)

    label = f"{y_label} against {x_label}, one dot per model."
    return draw(width, height, paint, identifier=identifier, label=label)


def is_drawable(point: Point) -> bool:
    """Whether the point has both of its values."""
    values = (point.x.value, point.y.value)
    return all(value is not None and math.isfinite(value) for value in values)


def _set_frame(points: Sequence[Point], spans: Sequence[Interval], set_limits: Callable[[float, float], object]) -> None:
    """Around every value and the intervals of candidates; a far longer one of a control is cut off."""
    ends = [(point.mark is not None, end) for point, span in zip(points, spans, strict=True) for end in span.ends or ()]
    needed = [*(span.value for span in spans), *(end for is_candidate, end in ends if is_candidate)]
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


def _draw_texts(axes: Axes, drawn: Sequence[Point]) -> None:
    """Each text near its dot, where it covers neither a dot nor another text; a line leads to one that is further away."""
    scale = POINTS_PER_INCH / axes.get_figure().dpi  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    values = [(point.x.value or 0.0, point.y.value or 0.0) for point in drawn]
    spots = [Spot(*(float(part) * scale for part in axes.transData.transform(value))) for value in values]
    box = axes.get_window_extent()
    left, right, bottom, top = (float(edge) * scale for edge in (box.x0, box.x1, box.y0, box.y1))
    labels = LabelPlaces(left=left, right=right, bottom=bottom, top=top, dots=spots)
    line = {"arrowstyle": "-", "color": INK, "alpha": 0.5, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 4}
    for point, value, spot in zip(drawn, values, spots, strict=True):
        if point.text is None:
            continue
        x, y, is_far = labels.place(spot, len(point.text) * PIXELS_PER_CHARACTER, SMALL_PIXELS)
        axes.annotate(
            point.text,
            value,
            xytext=(x - spot.x, y - spot.y),
            textcoords="offset points",
            ha="left",
            va="bottom",
            size=SMALL_PIXELS,
            zorder=5,
            arrowprops=line if is_far else None,
        )
