"""How good each variant is against how much it keeps, with the curve that weight interpolation gives for free."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.scatter import TICK_STEPS, Interval, LabelPlaces, Spot
from crossgraft.report.plots.svg import (
    FONT_PIXELS,
    INK,
    PAPER,
    PIXELS_PER_CHARACTER,
    POINTS_PER_INCH,
    SMALL_PIXELS,
    Mark,
    draw,
    family_marks,
    framed_axes,
    shortened,
)

_MARGINS = (50, 16, 54, 46)
_LONGEST_LABEL = 22
_AIR = 5  # between two names
_ROOM_X, _ROOM_Y = 0.14, 0.3  # of the span, on either side: for names and intervals
_LEAST_SPAN = 0.02  # of an axis: differences below it are not worth a figure
CURVE_LABEL = "weights between pretrained and full (free)"


class TradeOff(NamedTuple):
    """One variant.

    Attributes:
        name: Name beside its dot.
        x: Similarity of its features to the pretrained ones.
        y: Quality.
        sweep: Dots of one sweep share mark and name, and are joined by a line.
        strength: Orders the dots of a sweep.
    """

    name: str
    x: Interval
    y: Interval
    sweep: str | None = None
    strength: float | None = None


def trade_off_figure(
    variants: Sequence[TradeOff],
    curve: Sequence[tuple[float, float]],
    joined: Sequence[bool] = (),
    *,
    x_label: str,
    y_label: str,
    identifier: str,
    short: str | None = None,
    curve_label: str = CURVE_LABEL,
    is_wide: bool = True,
) -> Markup:
    """Draw ``variants``, those without both values left out, and ``curve`` behind them.

    Args:
        variants: Variants in the order of the table.
        curve: Similarity and quality of the networks between pretrained and fine-tuned, in their order; may be empty.
        joined: Whether each of them is joined to the next; where not, as by default, nothing is drawn between the two.
        x_label: Quantity and unit.
        y_label: Quantity and unit.
        identifier: Unique on the page.
        short: ``x_label`` on a small screen; None: the same.
        curve_label: What the curve is, for its legend.
        is_wide: Else for the screen of a phone.
    """
    width, height = (560, 360) if is_wide else (340, 330)
    below = x_label if is_wide or short is None else short
    drawable = [each for each in variants if _is_finite(each.x.value) and _is_finite(each.y.value)]
    pieces = _pieces(curve, joined)
    path = [point for piece in pieces for point in piece]
    marks = family_marks(each.sweep or each.name for each in variants)

    def paint(figure: Figure) -> None:
        fitting = shortened(below, int((width - _MARGINS[0]) / PIXELS_PER_CHARACTER))
        axes = framed_axes(figure, width, height, _MARGINS, title=y_label, x_label=fitting)
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        _set_limits(axes, drawable, path)
        if path:
            _draw_curve(axes, pieces, curve_label)
        sweeps = dict.fromkeys(each.sweep for each in drawable if each.sweep is not None)
        lines = [_draw_sweep(axes, [each for each in drawable if each.sweep == name], marks[name]) for name in sweeps]
        for each in drawable:
            _draw_variant(axes, each, marks[each.sweep or each.name])
        _write_names(axes, drawable, [*pieces, *lines], marks)

    names = ", ".join(each.name for each in drawable)
    return draw(width, height, paint, identifier=identifier, label=f"{y_label} against {below}: {names}.")


def _pieces(curve: Sequence[tuple[float, float]], joined: Sequence[bool]) -> list[list[tuple[float, float]]]:
    """Runs of measured points that are joined; a point that is joined to none is a piece of its own."""
    pieces: list[list[tuple[float, float]]] = []
    goes_on = False
    for place, (x, y) in enumerate(curve):
        if _is_finite(x) and _is_finite(y):
            if not goes_on:
                pieces.append([])
            pieces[-1].append((x, y))
        goes_on = _is_finite(x) and _is_finite(y) and place < len(joined) and joined[place]
    return pieces


def _set_limits(axes: Axes, drawable: Sequence[TradeOff], path: Sequence[tuple[float, float]]) -> None:
    """Around dots and curve; long intervals are cut off, because they would press all dots into a corner."""
    xs = [each.x.value or 0.0 for each in drawable] + [x for x, _ in path]
    ys = [each.y.value or 0.0 for each in drawable] + [y for _, y in path]
    if not drawable:
        return
    for values, set_limits, room in ((xs, axes.set_xlim, _ROOM_X), (ys, axes.set_ylim, _ROOM_Y)):
        span = max(max(values) - min(values), _LEAST_SPAN)
        middle = (max(values) + min(values)) / 2
        set_limits(middle - span * (0.5 + room), middle + span * (0.5 + room))


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _draw_curve(axes: Axes, pieces: Sequence[Sequence[tuple[float, float]]], label: str) -> None:
    look: dict[str, Any] = {"color": INK, "alpha": 0.55, "linewidth": 1.4, "linestyle": (0, (4, 3))}
    for piece in pieces:
        axes.plot([x for x, _ in piece], [y for _, y in piece], zorder=1, **look)
    path = [point for piece in pieces for point in piece]
    measured: dict[str, Any] = {"marker": "o", "markersize": 3.2, "markerfacecolor": INK, "markeredgecolor": "none"}
    axes.plot([x for x, _ in path], [y for _, y in path], zorder=1, linestyle="none", alpha=0.55, **measured)
    line: dict[str, Any] = look if any(len(piece) > 1 for piece in pieces) else {"linestyle": "none", "alpha": 0.55}
    axes.legend(
        [Line2D([], [], **line, **measured)],
        [label],
        loc="lower left",
        bbox_to_anchor=(-0.02, 1),
        borderaxespad=0,
        handlelength=2.2,
    )


def _draw_sweep(axes: Axes, points: Sequence[TradeOff], mark: Mark) -> list[tuple[float, float]]:
    """Join the dots by strength, and say where the line runs."""
    ordered = sorted(points, key=lambda each: each.strength or 0.0)
    line = [(each.x.value or 0.0, each.y.value or 0.0) for each in ordered]
    axes.plot([x for x, _ in line], [y for _, y in line], color=mark.colour, alpha=0.6, linewidth=1.4, zorder=2)
    return line


def _draw_variant(axes: Axes, each: TradeOff, mark: Mark) -> None:
    x, y = each.x.value or 0.0, each.y.value or 0.0
    faint: dict[str, Any] = {"color": mark.colour, "alpha": 0.6, "linewidth": 1.0, "zorder": 2}
    if (ends := each.x.ends) is not None:
        axes.plot(ends, (y, y), **faint)
    if (ends := each.y.ends) is not None:
        axes.plot((x, x), ends, **faint)
    axes.plot(x, y, mark.marker, color=mark.colour, markeredgecolor=PAPER, markeredgewidth=0.8, zorder=4)


def _write_names(
    axes: Axes, drawable: Sequence[TradeOff], lines: Sequence[Sequence[tuple[float, float]]], marks: dict[str, Mark]
) -> None:
    """Each name where it covers no dot, no other name and as little as possible of the lines."""
    scale = POINTS_PER_INCH / axes.get_figure().dpi  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]

    def pixels(x: float, y: float) -> tuple[float, float]:
        there = axes.transData.transform((x, y))
        return float(there[0]) * scale, float(there[1]) * scale

    box = axes.get_window_extent()
    spots = [Spot(*pixels(each.x.value or 0.0, each.y.value or 0.0)) for each in drawable]
    places = LabelPlaces(
        left=box.x0 * scale,
        right=box.x1 * scale,
        bottom=box.y0 * scale,
        top=box.y1 * scale,
        dots=spots,
        avoided=[spot for line in lines for spot in _along([pixels(x, y) for x, y in line])],
    )
    named: set[str] = set()
    for each, spot in zip(drawable, spots, strict=True):
        text = shortened(each.name, _LONGEST_LABEL)
        if each.sweep is not None and each.sweep in named and each.strength is not None:
            text = f"{each.strength:g}"
        named.add(each.sweep or each.name)
        label_width = len(text) * PIXELS_PER_CHARACTER * SMALL_PIXELS / FONT_PIXELS + _AIR
        x, y, is_far = places.place(spot, label_width, SMALL_PIXELS + 1)
        mark = marks[each.sweep or each.name]
        axes.annotate(
            text,
            (each.x.value or 0.0, each.y.value or 0.0),
            xytext=(x - spot.x, y - spot.y),
            textcoords="offset points",
            ha="left",
            va="bottom",
            size=SMALL_PIXELS,
            zorder=5,
            # Behind the letters, so that they are read where an interval crosses them.
            bbox={"boxstyle": "square,pad=0", "facecolor": PAPER, "edgecolor": "none", "alpha": 0.7},
            arrowprops={"arrowstyle": "-", "color": mark.colour, "alpha": 0.5, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 5}
            if is_far
            else None,
        )


def _along(path: Sequence[tuple[float, float]]) -> list[Spot]:
    """Points of a line, close enough that no name fits between them."""
    spots: list[Spot] = []
    for (x0, y0), (x1, y1) in itertools.pairwise(path):
        steps = max(1, int(math.hypot(x1 - x0, y1 - y0) / 8))
        spots += [Spot(x0 + (x1 - x0) * step / steps, y0 + (y1 - y0) * step / steps) for step in range(steps)]
    return spots
