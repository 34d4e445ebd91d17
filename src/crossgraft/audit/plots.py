"""Figures of an audit: AUC by the share of positives that carry an artefact, and spectra of networks and artefacts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from crossgraft.audit.reliance import CHANCE
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.plots.svg import INK, OKABE_ITO, SMALL_PIXELS, draw, framed_axes, shortened

_WIDTH = 410
_MARGINS = (46, 62, 26, 46)  # names of curves stand at the right


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


def reliance_figure(curve: RelianceCurve, *, identifier: str) -> Markup:
    """Both curves with their intervals, chance, and a model that sees nothing but the artefact."""
    shares, width, height = np.array(curve.shares), 330, 260

    def paint(figure: Figure) -> None:
        below = "Share of positives with the artefact"
        axes = framed_axes(figure, width, height, _MARGINS, title=curve.name, x_label=below)
        axes.set(xlim=(0, float(shares[-1])), ylim=(-0.02, 1.02), ylabel="AUC")
        axes.xaxis.set_major_locator(FixedLocator([0, 0.2, 0.5, 0.8, 1]))
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axes.axhline(CHANCE, color=INK, alpha=0.3, linewidth=0.8)
        pure = np.where(shares > 0, 0.0, CHANCE)
        for values in (CHANCE + shares / 2, pure):
            axes.plot(shares, values, color=INK, alpha=0.45, linewidth=1, linestyle=(0, (2, 2)))
        axes.text(float(shares[-1]) * 0.98, 0.03, "artefact alone", ha="right", va="bottom", size=SMALL_PIXELS, alpha=0.6)
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
    ends_in_words = ", ".join("unknown" if value is None else f"{value:.2f}" for value in last)
    return draw(
        width,
        height,
        paint,
        identifier=identifier,
        label=f"{curve.name}: AUC by share; at the largest share i.i.d. and o.o.d. {ends_in_words}.",
    )


class OodCurve(NamedTuple):
    """One artefact in a drawing of several.

    Attributes:
        name: For the legend.
        shares: From 0 on.
        values: O.o.d. AUC by share.
    """

    name: str
    shares: Sequence[float]
    values: Sequence[Interval]


MOST_OOD_CURVES, _CURVE_CHARACTERS = 5, 50


def ood_figure(title: str, curves: Sequence[OodCurve], *, identifier: str) -> Markup:
    """O.o.d. AUC of several artefacts of one model, with intervals, and chance.

    Args:
        title: Name of the model.
        curves: The first ``MOST_OOD_CURVES`` are drawn.
        identifier: Unique on the page.
    """
    drawn = curves[:MOST_OOD_CURVES]
    top = _ABOVE + _LEGEND_ROW * len(drawn)
    tall = 260 + _LEGEND_ROW * len(drawn)

    def paint(figure: Figure) -> None:
        below = "Share of positives with the artefact"
        axes = framed_axes(figure, _WIDTH, tall, (*_SIDES, top, _BELOW), title=title, x_label=below)
        axes.set(xlim=(0, float(drawn[0].shares[-1])), ylim=(-0.02, 1.02), ylabel="O.o.d. AUC")
        axes.xaxis.set_major_locator(FixedLocator([0, 0.2, 0.5, 0.8, 1]))
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axes.axhline(CHANCE, color=INK, alpha=0.3, linewidth=0.8)
        for curve, colour, marker in zip(drawn, OKABE_ITO[1:], "osD^v", strict=False):
            name = shortened(curve.name, _CURVE_CHARACTERS)
            _draw_curve(axes, np.array(curve.shares), curve.values, colour, marker=marker, label=name)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=1, borderaxespad=0, handlelength=1.8)

    ends = ", ".join(
        f"{curve.name} {'unknown' if (last := curve.values[-1].value) is None else f'{last:.2f}'}" for curve in drawn
    )
    return draw(_WIDTH, tall, paint, identifier=identifier, label=f"{title}: o.o.d. AUC by share; at the largest share {ends}.")


def _draw_curve(
    axes: Axes, shares: np.ndarray, intervals: Sequence[Interval], colour: str, *, marker: str = "o", label: str = ""
) -> float:
    """The curve with its band; gives its last value."""
    values = np.array([np.nan if each.value is None else each.value for each in intervals])
    low = np.array([value if each.low is None else each.low for each, value in zip(intervals, values, strict=True)])
    high = np.array([value if each.high is None else each.high for each, value in zip(intervals, values, strict=True)])
    axes.fill_between(shares, np.clip(low, 0, 1), np.clip(high, 0, 1), color=colour, alpha=0.18, linewidth=0)
    axes.plot(shares, values, f"{marker}-", color=colour, markersize=4, linewidth=1.6, clip_on=False, label=label or None)
    return float(values[-1])


def _apart(ends: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Names that do not cover each other."""
    (first, *of_first), (second, *of_second) = ends
    if abs(first - second) < 0.08:
        middle = (first + second) / 2
        first, second = (middle + 0.045, middle - 0.045) if first >= second else (middle - 0.045, middle + 0.045)
    return [(first, of_first[0], of_first[1]), (second, of_second[0], of_second[1])]


_SIDES, _ABOVE, _BELOW, _LEGEND_ROW = (50, 14), 30, 46, 18  # pixels
_NYQUIST = 0.5
_LEAST, _MOST = 0.01, 100.0  # times a flat spectrum: further out is nothing, or a single wave
_NAME_CHARACTERS = 26
_LOOKS: dict[str, dict[str, Any]] = {
    "images": {"color": INK, "alpha": 0.55, "linewidth": 1.2, "linestyle": (0, (1, 1.5))},
    "network": {"color": OKABE_ITO[0], "linewidth": 2},
    "network before": {"color": OKABE_ITO[0], "linewidth": 1.6, "linestyle": (0, (4, 2))},
}
MOST_DRAWN_ARTEFACTS = len(OKABE_ITO) - 1
"""Curves of artefacts that have a colour of their own."""


class SpectrumCurve(NamedTuple):
    """One spectrum, ring by ring; ring 0 is left out.

    Attributes:
        name: For the legend.
        values: Shares of the spectrum, with a sum of 1.
        role: What it is of, which decides how it is drawn.
    """

    name: str
    values: Sequence[float]
    role: Literal["images", "network", "network before", "artefact"]


class BandCurve(NamedTuple):
    """AUC by cutoff.

    Attributes:
        name: For the legend.
        cutoffs: Cycles per pixel, ascending.
        values: One per cutoff.
    """

    name: str
    cutoffs: Sequence[float]
    values: Sequence[Interval]


def spectra_figure(title: str, frequencies: Sequence[float], curves: Sequence[SpectrumCurve], *, identifier: str) -> Markup:
    """Draw spectra as multiples of a flat one, so that 1 is as much as there would be if all frequencies had alike.

    Args:
        title: Name of the model.
        frequencies: Cycles per pixel of the input, by ring.
        curves: Curves, at most ``MOST_DRAWN_ARTEFACTS`` of artefacts.
        identifier: Unique on the page.
    """
    rows = math.ceil(len(curves) / 2)
    top = _ABOVE + _LEGEND_ROW * rows
    tall = 270 + _LEGEND_ROW * rows

    def paint(figure: Figure) -> None:
        below = "Cycles per pixel of the input"
        axes = framed_axes(figure, _WIDTH, tall, (*_SIDES, top, _BELOW), title=title, x_label=below)
        axes.set(xlim=(0, _NYQUIST), ylim=(_LEAST, _MOST), yscale="log", ylabel="Share, 1 = even")
        axes.yaxis.set_major_locator(FixedLocator([0.01, 0.1, 1, 10, 100]))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.axhline(1, color=INK, alpha=0.3, linewidth=0.8)
        artefacts = iter(OKABE_ITO[1:])
        for curve in curves:
            look = _LOOKS.get(curve.role) or {"color": next(artefacts), "linewidth": 1.3}
            values = np.clip(np.asarray(curve.values[1:]) * (len(curve.values) - 1), _LEAST, _MOST)
            axes.plot(frequencies[1:], values, label=shortened(curve.name, _NAME_CHARACTERS), **look)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=2, borderaxespad=0, handlelength=1.8)

    names = ", ".join(curve.name for curve in curves)
    return draw(_WIDTH, tall, paint, identifier=identifier, label=f"{title}: spectra by frequency: {names}.")


_MAP_LEFT, _MAP_ROW, _MAP_COLUMNS, _KEY = 92, 24, 48, 40
_MAP_MOST = 3.0  # times a flat spectrum: more has the same colour
_MAP_STRONGEST = 0.85  # opacity of that


class PriorityBar(NamedTuple):
    """One row of a map.

    Attributes:
        name: Name at the left.
        values: Shares of the spectrum by ring, with a sum of 1.
    """

    name: str
    values: Sequence[float]


def priority_map_figure(title: str, frequencies: Sequence[float], rows: Sequence[PriorityBar], *, identifier: str) -> Markup:
    """Learning priorities as a heat map: a row for each network, a column for each band, as multiples of a flat one.

    Args:
        title: Name of the model.
        frequencies: Cycles per pixel of the input, by ring; ring 0 is left out.
        rows: Networks, the first one at the top.
        identifier: Unique on the page.
    """
    shown = np.array([np.asarray(row.values[1:]) for row in rows]) * (len(frequencies) - 1)
    per_column = max(1, math.ceil(shown.shape[1] / _MAP_COLUMNS))
    starts = np.arange(0, shown.shape[1], per_column)
    binned = np.stack([shown[:, start : start + per_column].mean(axis=1) for start in starts], axis=1)
    step = frequencies[1] - frequencies[0]
    edges = np.r_[[frequencies[1 + start] for start in starts], frequencies[-1] + step] - step / 2
    tall = _ABOVE + _MAP_ROW * len(rows) + _BELOW + _KEY

    def paint(figure: Figure) -> None:
        margins, below = (_MAP_LEFT, _SIDES[1], _ABOVE, _BELOW + _KEY), "Cycles per pixel of the input"
        axes = framed_axes(figure, _WIDTH, tall, margins, title=title, x_label=below)
        axes.set(xlim=(0, _NYQUIST), ylim=(len(rows), 0))
        axes.yaxis.set_major_locator(FixedLocator([place + 0.5 for place in range(len(rows))]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda _, place: rows[place].name if place is not None else ""))
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        for place, row in enumerate(binned.tolist()):
            for left, right, value in zip(edges, edges[1:], row, strict=False):
                _shade(axes, (left, place + 0.04), right - left, 0.92, value)
        key = figure.add_axes((_MAP_LEFT / _WIDTH, 14 / tall, (_WIDTH - _MAP_LEFT - _SIDES[1]) / _WIDTH, 9 / tall))
        key.set(xlim=(0, _MAP_MOST), ylim=(0, 1))
        for place in range(30):
            _shade(key, (place / 10, 0), 0.1, 1, place / 10 + 0.05)
        key.yaxis.set_major_locator(NullLocator())
        key.xaxis.set_major_locator(FixedLocator([0, 1, 2, 3]))
        key.xaxis.set_major_formatter(FuncFormatter(lambda value, _: {1: "1 = even", 3: "3 ×"}.get(round(value), f"{value:g}")))
        key.tick_params(length=2, pad=1)
        key.spines[:].set_visible(False)

    names = ", ".join(row.name for row in rows)
    return draw(
        _WIDTH, tall, paint, identifier=identifier, label=f"{title}: learning priority by frequency: {names}.", is_filled=True
    )


def _shade(axes: Axes, corner: tuple[float, float], wide: float, tall: float, value: float) -> None:
    """A cell, the stronger the more there is."""
    opacity = _MAP_STRONGEST * min(max(value, 0.0), _MAP_MOST) / _MAP_MOST
    axes.add_patch(Rectangle(corner, wide, tall, color=OKABE_ITO[0], alpha=opacity, linewidth=0))


def bands_figure(title: str, curves: Sequence[BandCurve], *, clean: float | None, chance: float, identifier: str) -> Markup:
    """Draw AUC by cutoff with its interval, chance, and the AUC of the images as they are.

    Args:
        title: Name of the model.
        curves: Low-pass and high-pass.
        clean: AUC of the images as they are.
        chance: Value of what does not look at the images.
        identifier: Unique on the page.
    """
    height, ticks = 288, [1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2]

    def paint(figure: Figure) -> None:
        margins, below = (*_SIDES, _ABOVE + _LEGEND_ROW, _BELOW), "Cutoff, cycles per pixel of the images"
        axes = framed_axes(figure, _WIDTH, height, margins, title=title, x_label=below)
        axes.set(xscale="log", ylim=(-0.02, 1.02), ylabel="AUC")
        axes.xaxis.set_major_locator(FixedLocator(ticks))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"1/{round(1 / value)}"))
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        axes.axhline(chance, color=INK, alpha=0.3, linewidth=0.8)
        if clean is not None:
            axes.axhline(clean, color=INK, alpha=0.6, linewidth=1, linestyle=(0, (2, 2)), label="no filter")
        for curve, colour, marker in zip(curves, OKABE_ITO, "os", strict=False):
            values = [math.nan if each.value is None else each.value for each in curve.values]
            ends = np.array([each.ends or (value, value) for each, value in zip(curve.values, values, strict=True)])
            axes.fill_between(curve.cutoffs, ends[:, 0], ends[:, 1], color=colour, alpha=0.18, linewidth=0)
            axes.plot(curve.cutoffs, values, f"{marker}-", color=colour, markersize=4, linewidth=1.6, label=curve.name)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=3, borderaxespad=0, handlelength=1.8)

    names = " and ".join(curve.name for curve in curves)
    return draw(_WIDTH, height, paint, identifier=identifier, label=f"{title}: AUC by cutoff of {names}.")
