"""Similarity layer by layer: one curve per pair of networks, and what untrained networks have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from crossgraft.report.plots.style import INK, MARKERS, OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_LEFT, _RIGHT, _BELOW, _LEGEND_ROW = 54, 16, 30, 18  # pixels
_LONGEST_LAYER = 18


class LayerCurve(NamedTuple):
    """One pair of networks.

    Attributes:
        name: For the legend.
        values: One per layer; None where there is none.
        spreads: Standard deviation of each.
        is_untrained: Whether it is of untrained networks, and drawn quieter.
    """

    name: str
    values: Sequence[float | None]
    spreads: Sequence[float | None]
    is_untrained: bool = False


def layer_curves_figure(
    layers: Sequence[str],
    curves: Sequence[LayerCurve],
    *,
    y_label: str,
    identifier: str,
    width: float = 640,
    height: float = 260,
) -> Markup:
    """Draw each curve with its spread as bars.

    Args:
        layers: Names of the layers, first to last.
        curves: Curves with as many values.
        y_label: Quantity.
        identifier: Unique on the page.
        width: Width in CSS pixels.
        height: Height in CSS pixels without names of layers and legend.
    """
    names = [shortened(name, _LONGEST_LAYER) for name in layers]
    flat = len(names) * max(len(name) for name in names) * PIXELS_PER_CHARACTER < width - _LEFT - _RIGHT
    below = _BELOW if flat else max(len(name) for name in names) * PIXELS_PER_CHARACTER + 12
    in_row = 2 if width >= 500 else 1
    top = 8 + _LEGEND_ROW * math.ceil(len(curves) / in_row)
    tall = height + below + top
    most = int(width / in_row / PIXELS_PER_CHARACTER) - 6

    def paint(figure: Figure) -> None:
        size = ((width - _LEFT - _RIGHT) / width, height / tall)
        axes = figure.add_axes((_LEFT / width, below / tall, *size))
        axes.set(ylim=(-0.02, 1.02), xlim=(-0.3, len(layers) - 0.7), ylabel=y_label)
        axes.xaxis.set_major_locator(FixedLocator(list(range(len(layers)))))
        axes.set_xticklabels(names, rotation=0 if flat else 90, size=SMALL_PIXELS)
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        for place, curve in enumerate(curves):
            colour = INK if curve.is_untrained else OKABE_ITO[place % len(OKABE_ITO)]
            values = [math.nan if value is None else value for value in curve.values]
            axes.errorbar(
                range(len(layers)),
                values,
                yerr=[spread or 0.0 for spread in curve.spreads],
                color=colour,
                alpha=0.6 if curve.is_untrained else 1,
                linestyle=(0, (2, 2)) if curve.is_untrained else "-",
                marker=MARKERS[place % len(MARKERS)],
                markersize=5,
                linewidth=1.5,
                elinewidth=1,
                label=shortened(curve.name, most),
            )
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=in_row, borderaxespad=0.2, handlelength=2.4)

    drawn = ", ".join(curve.name for curve in curves)
    return draw(width, tall, paint, identifier=identifier, label=f"{y_label} by layer: {drawn}.")
