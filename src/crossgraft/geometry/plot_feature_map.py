"""Features of several networks in one plane, and those of one class as t-SNE draws them; one panel per network."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.geometry.maps_record import FeatureMapRecord, MappedNetworkRow, TsneRecord, TsneRow
from crossgraft.report.plots.style import INK, OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_WIDE, _NARROW = 828, 340  # pixels
_IN_ROW = 3
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 270, 52, 12, 44, 44
_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the largest density


class _Panel(NamedTuple):
    name: str
    said: str
    draw: Callable[[Axes], None]


def feature_map_figure(record: FeatureMapRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """One panel per network but the reference, whose density is drawn dashed behind each; all have the same axes.

    Args:
        record: The map.
        identifier: Unique on the page.
        is_wide: Whether three panels stand beside each other, or one.
    """
    home = next(each for each in record.networks if each.network == record.reference)

    def painter(row: MappedNetworkRow) -> Callable[[Axes], None]:
        def paint(axes: Axes) -> None:
            _draw_density(axes, record, home, INK, is_reference=True)
            _draw_density(axes, record, row, OKABE_ITO[0], is_reference=False)
            xs, ys = [x for x, _ in row.points], [y for _, y in row.points]
            axes.plot(xs, ys, "o", color=OKABE_ITO[0], markersize=2.8, alpha=0.7, markeredgewidth=0)
            axes.set(xlim=record.x_range, ylim=record.y_range)
            axes.set_xlabel(f"PC 1 ({record.shares[0]:.0%} of the variance)", fontsize=SMALL_PIXELS, labelpad=3)
            axes.set_ylabel(f"PC 2 ({record.shares[1]:.0%})", fontsize=SMALL_PIXELS, labelpad=3)
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_locator(MaxNLocator(4))

        return paint

    panels = [
        _Panel(row.network, "no density" if row.overlap is None else f"overlap {row.overlap:.2f}", painter(row))
        for row in record.networks
        if row is not home
    ]
    label = f"Features of {', '.join(panel.name for panel in panels)} in one plane with {record.reference}."
    return _drawn(panels, label, identifier=identifier, is_wide=is_wide)


def tsne_figure(record: TsneRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """One panel per network that has a map; places and units have no meaning, so that axes have no numbers.

    Args:
        record: Maps of one class.
        identifier: Unique on the page.
        is_wide: Whether three panels stand beside each other, or one.
    """

    def painter(row: TsneRow) -> Callable[[Axes], None]:
        def paint(axes: Axes) -> None:
            xs, ys = [x for x, _ in row.points], [y for _, y in row.points]
            axes.plot(xs, ys, "o", color=OKABE_ITO[0], markersize=4.4, alpha=0.85, markeredgewidth=0)
            axes.set(xticks=[], yticks=[])
            axes.set_aspect("equal", adjustable="datalim")
            axes.margins(0.08)

        return paint

    panels = [
        _Panel(row.network, f"gap {_two(row.gap)}, drawn {_two(row.drawn_gap)}", painter(row))
        for row in record.networks
        if row.points
    ]
    label = f"Images of {record.class_name} as t-SNE draws them in {', '.join(panel.name for panel in panels)}."
    return _drawn(panels, label, identifier=identifier, is_wide=is_wide)


def _two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _drawn(panels: Sequence[_Panel], label: str, *, identifier: str, is_wide: bool) -> Markup:
    width, in_row = (_WIDE, min(_IN_ROW, max(2, len(panels)))) if is_wide else (_NARROW, 1)
    panel_width = width / in_row
    height = _HEIGHT * math.ceil(len(panels) / in_row)

    def paint(figure: Figure) -> None:
        for place, panel in enumerate(panels):
            left = panel_width * (place % in_row) + _LEFT
            bottom = height - _HEIGHT * (place // in_row + 1) + _BOTTOM
            size = (panel_width - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM)
            axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
            panel.draw(axes)
            axes.set_title(shortened(panel.name, int(size[0] / PIXELS_PER_CHARACTER)), loc="left", pad=21)
            axes.text(0, 1.025, panel.said, transform=axes.transAxes, fontsize=SMALL_PIXELS, va="bottom")

    return draw(width, height, paint, identifier=identifier, label=label)


def _draw_density(
    axes: Axes, record: FeatureMapRecord, row: MappedNetworkRow, colour: str, *, is_reference: bool
) -> None:
    if row.density is None:
        return
    density = np.asarray(row.density)
    xs = np.linspace(*record.x_range, density.shape[1])
    ys = np.linspace(*record.y_range, density.shape[0])
    if not is_reference:
        for level in _LEVELS:
            axes.contourf(xs, ys, density, levels=[level, 1.01], colors=[colour], alpha=0.13)
        return
    look: dict[str, Any] = {"colors": [colour], "linewidths": 0.9, "linestyles": "dashed", "alpha": 0.75}
    axes.contour(xs, ys, density, levels=_LEVELS[::2], zorder=3, **look)
