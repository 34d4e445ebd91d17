"""Spectra on one axis of frequency, and the AUC of a model by what a filter leaves of its images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from crossgraft.report.plots.scatter import Interval
from crossgraft.report.plots.style import INK, OKABE_ITO, PIXELS_PER_CHARACTER, shortened
from crossgraft.report.plots.svg import draw

_LEFT, _RIGHT, _TOP, _BOTTOM, _LEGEND_ROW = 50, 14, 30, 46, 18  # pixels
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


def spectra_figure(
    title: str,
    frequencies: Sequence[float],
    curves: Sequence[SpectrumCurve],
    *,
    identifier: str,
    width: float = 410,
    height: float = 270,
) -> Markup:
    """Draw spectra as multiples of a flat one, so that 1 is as much as there would be if all frequencies had alike.

    Args:
        title: Name of the model.
        frequencies: Cycles per pixel of the input, by ring.
        curves: Curves, at most ``MOST_DRAWN_ARTEFACTS`` of artefacts.
        identifier: Unique on the page.
        width: Width in CSS pixels.
        height: Height in CSS pixels without the legend.
    """
    rows = math.ceil(len(curves) / 2)
    top = _TOP + _LEGEND_ROW * rows
    tall = height + _LEGEND_ROW * rows

    def paint(figure: Figure) -> None:
        axes = _axes(figure, title, width, tall, top)
        axes.set(xlim=(0, _NYQUIST), ylim=(_LEAST, _MOST), yscale="log", xlabel="Cycles per pixel of the input")
        axes.set_ylabel("Share, 1 = even")
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
    return draw(width, tall, paint, identifier=identifier, label=f"{title}: spectra by frequency: {names}.")


def bands_figure(
    title: str,
    curves: Sequence[BandCurve],
    *,
    clean: float | None,
    chance: float,
    identifier: str,
    width: float = 410,
    height: float = 288,
) -> Markup:
    """Draw AUC by cutoff with its interval, chance, and the AUC of the images as they are.

    Args:
        title: Name of the model.
        curves: Low-pass and high-pass.
        clean: AUC of the images as they are.
        chance: Value of what does not look at the images.
        identifier: Unique on the page.
        width: Width in CSS pixels.
        height: Height in CSS pixels.
    """
    ticks = [1 / 128, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2]

    def paint(figure: Figure) -> None:
        axes = _axes(figure, title, width, height, _TOP + _LEGEND_ROW)
        axes.set(xscale="log", ylim=(-0.02, 1.02), xlabel="Cutoff, cycles per pixel of the images")
        axes.set_ylabel("AUC")
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
    return draw(width, height, paint, identifier=identifier, label=f"{title}: AUC by cutoff of {names}.")


def _axes(figure: Figure, title: str, width: float, height: float, top: float) -> Axes:
    figure.text(4 / width, 1 - 4 / height, shortened(title, int(width / PIXELS_PER_CHARACTER)), va="top")
    size = ((width - _LEFT - _RIGHT) / width, (height - _BOTTOM - top) / height)
    return figure.add_axes((_LEFT / width, _BOTTOM / height, *size))
