"""Figures of where networks lie: attention, filters, features on a plane, and the path between two networks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from crossgraft.geometry.record import (
    AttentionRecord,
    FeatureMapRecord,
    FilterRow,
    InterpolationPathRecord,
    MappedNetworkRow,
    TsneRecord,
    TsneRow,
)
from crossgraft.report.plots.scatter import TICK_STEPS
from crossgraft.report.plots.svg import INK, OKABE_ITO, PAPER, PIXELS_PER_CHARACTER, SMALL_PIXELS, draw, shortened

LEVELS = 8


def draw_cells(
    axes: Axes, values: Float[np.ndarray, "rows columns"], colour: str, *, side_pixels: float, levels: int = LEVELS
) -> None:
    """Cells of one colour: nothing of it where a value is 0 or less, all of it at 1. Row 0 is at the top.

    Args:
        axes: Square or not; cells are square.
        values: In shares of full colour.
        colour: Colour of a 1.
        side_pixels: Longer side of what is drawn.
        levels: Shades.
    """
    rows, columns = values.shape
    shades = np.clip(np.ceil(values * levels), 0, levels).astype(int)
    for shade in range(1, levels + 1):
        strokes = [stroke for row in range(rows) for stroke in _strokes(shades[row] == shade, row)]
        if strokes:
            axes.add_patch(
                PathPatch(
                    Path.make_compound_path(*strokes),
                    fill=False,
                    edgecolor=colour,
                    alpha=shade / levels,
                    linewidth=side_pixels / max(rows, columns),
                    capstyle="butt",
                    antialiased=False,  # no seams between cells
                )
            )
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    axes.set_aspect("equal")
    for side in ("left", "bottom", "top", "right"):
        axes.spines[side].set(visible=True, alpha=0.35)


def _strokes(marks: Bool[np.ndarray, " columns"], row: int) -> Iterator[Path]:
    """One for each run of neighbours."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(int)))
    for first, last in ends.reshape(-1, 2).tolist():
        yield Path([(first, row + 0.5), (last, row + 0.5)], [Path.MOVETO, Path.LINETO])


_WIDE, _NARROW = 828, 340  # pixels
_LARGEST, _GAP, _TOP, _BELOW, _LEFT = 150, 12, 26, 20, 70
MOST_DRAWN_NETWORKS = 6


def attention_figure(record: AttentionRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """Draw the attention of each network to each image; below a map its overlap with the reference.

    Args:
        record: Attention of the networks, of which the first ``MOST_DRAWN_NETWORKS`` are drawn.
        identifier: Unique on the page.
        is_wide: Whether there is room for large maps.
    """
    networks = record.networks[:MOST_DRAWN_NETWORKS]
    room = (_WIDE if is_wide else _NARROW) - _LEFT
    side = min(_LARGEST, room / len(networks) - _GAP)
    width = _LEFT + len(networks) * (side + _GAP)
    height = _TOP + len(record.drawn) * (side + _BELOW)

    def paint(figure: Figure) -> None:
        for column, network in enumerate(networks):
            left = _LEFT + column * (side + _GAP)
            name = shortened(network.network, max(3, int(side / PIXELS_PER_CHARACTER)))
            figure.text(left / width, 1 - 6 / height, name, va="top")
            for row, matrix in enumerate(network.attention):
                top = _TOP + row * (side + _BELOW)
                axes = figure.add_axes((left / width, 1 - (top + side) / height, side / width, side / height), anchor="NW")
                draw_cells(axes, np.asarray(matrix), OKABE_ITO[1], side_pixels=side)
                text = f"overlap {network.drawn_overlaps[row]:.2f}" if network.drawn_overlaps else "reference"
                axes.set_xlabel(text, fontsize=SMALL_PIXELS, labelpad=2, loc="left")
        for row, number in enumerate(record.drawn):
            middle = _TOP + row * (side + _BELOW) + side / 2
            figure.text(0, 1 - middle / height, f"Image {number + 1}", va="center", size=SMALL_PIXELS)

    names = ", ".join(network.network for network in networks)
    return draw(width, height, paint, identifier=identifier, label=f"Attention to patches of images, of {names}.")


_WIDTH, _FILTERS_TOP, _FILTERS_GAP, _LABEL = 400, 28, 6, 16  # pixels
_IN_ROW = 8
_LEVELS = 5


def filters_figure(row: FilterRow, *, identifier: str) -> Markup:
    """Draw the first filters: orange above, blue below the mean; below each R² of its best Gabor fit, where there is one."""
    in_row = min(_IN_ROW, len(row.patterns))
    side = (_WIDTH + _FILTERS_GAP) / _IN_ROW - _FILTERS_GAP
    label = _LABEL if row.r2 else 0
    height = _FILTERS_TOP + math.ceil(len(row.patterns) / in_row) * (side + _FILTERS_GAP + label)

    def paint(figure: Figure) -> None:
        title = shortened(f"{row.network}: {row.layer}", int(_WIDTH / PIXELS_PER_CHARACTER))
        figure.text(0, 1 - 4 / height, title, va="top")
        for index, pattern in enumerate(row.patterns):
            left = (index % in_row) * (side + _FILTERS_GAP)
            top = _FILTERS_TOP + (index // in_row) * (side + _FILTERS_GAP + label)
            axes = figure.add_axes((left / _WIDTH, 1 - (top + side) / height, side / _WIDTH, side / height))
            values = np.asarray(pattern)
            draw_cells(axes, values, OKABE_ITO[1], side_pixels=side, levels=_LEVELS)
            draw_cells(axes, -values, OKABE_ITO[0], side_pixels=side, levels=_LEVELS)
            if row.r2:
                r2 = row.r2[index]
                text = "flat" if r2 is None else f"{r2:.2f}"
                axes.set_xlabel(text, fontsize=SMALL_PIXELS - 1, labelpad=1)

    summary = f"First {len(row.patterns)} of {row.num_filters} filters of {row.layer} in {row.network}."
    return draw(_WIDTH, height, paint, identifier=identifier, label=summary)


_FEATURE_MAP_IN_ROW = 3
_HEIGHT, _FEATURE_MAP_LEFT, _RIGHT, _FEATURE_MAP_TOP, _BOTTOM = 270, 52, 12, 44, 44
_FEATURE_MAP_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of the largest density


class _Panel(NamedTuple):
    name: str
    caption: str
    draw: Callable[[Axes], None]


def feature_map_figure(record: FeatureMapRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """One panel per network but the reference, whose density is drawn dashed behind each; all have the same axes.

    Args:
        record: The map.
        identifier: Unique on the page.
        is_wide: Whether three panels stand beside each other, or one.
    """
    home = next(network for network in record.networks if network.network == record.reference)

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
    width, in_row = (_WIDE, min(_FEATURE_MAP_IN_ROW, max(2, len(panels)))) if is_wide else (_NARROW, 1)
    panel_width = width / in_row
    height = _HEIGHT * math.ceil(len(panels) / in_row)

    def paint(figure: Figure) -> None:
        for index, panel in enumerate(panels):
            left = panel_width * (index % in_row) + _FEATURE_MAP_LEFT
            bottom = height - _HEIGHT * (index // in_row + 1) + _BOTTOM
            size = (panel_width - _FEATURE_MAP_LEFT - _RIGHT, _HEIGHT - _FEATURE_MAP_TOP - _BOTTOM)
            axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
            panel.draw(axes)
            axes.set_title(shortened(panel.name, int(size[0] / PIXELS_PER_CHARACTER)), loc="left", pad=21)
            axes.text(0, 1.025, panel.caption, transform=axes.transAxes, fontsize=SMALL_PIXELS, va="bottom")

    return draw(width, height, paint, identifier=identifier, label=label)


def _draw_density(axes: Axes, record: FeatureMapRecord, row: MappedNetworkRow, colour: str, *, is_reference: bool) -> None:
    if row.density is None:
        return
    density = np.asarray(row.density)
    xs = np.linspace(*record.x_range, density.shape[1])
    ys = np.linspace(*record.y_range, density.shape[0])
    if not is_reference:
        for level in _FEATURE_MAP_LEVELS:
            axes.contourf(xs, ys, density, levels=[level, 1.01], colors=[colour], alpha=0.13)
        return
    look: dict[str, Any] = {"colors": [colour], "linewidths": 0.9, "linestyles": "dashed", "alpha": 0.75}
    axes.contour(xs, ys, density, levels=_FEATURE_MAP_LEVELS[::2], zorder=3, **look)


_INTERPOLATION_PATH_LEFT, _INTERPOLATION_PATH_RIGHT, _INTERPOLATION_PATH_TOP, _INTERPOLATION_PATH_BOTTOM, _LEGEND = (
    52,
    16,
    30,
    46,
    18,
)  # pixels
_PANEL_HEIGHT = 250
Curve = Sequence[float | None]


def interpolation_path_figure(record: InterpolationPathRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """Two panels over the share of the end: the loss, and CKA to the start with both estimates.

    Points are joined where the record says that they may be; where not, nothing is drawn between them.
    """
    width, height = (828, _PANEL_HEIGHT) if is_wide else (340, 2 * _PANEL_HEIGHT)
    panel = width / 2 if is_wide else width
    alphas = [point.alpha for point in record.points]
    joined = [record.is_joined(index) for index in range(len(alphas) - 1)]

    def axes_at(figure: Figure, number: int) -> Axes:
        left = (panel * number if is_wide else 0) + _INTERPOLATION_PATH_LEFT
        bottom = (0 if is_wide else _PANEL_HEIGHT * (1 - number)) + _INTERPOLATION_PATH_BOTTOM
        size = (
            panel - _INTERPOLATION_PATH_LEFT - _INTERPOLATION_PATH_RIGHT,
            _PANEL_HEIGHT - _INTERPOLATION_PATH_TOP - _INTERPOLATION_PATH_BOTTOM - _LEGEND,
        )
        return figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))

    def paint(figure: Figure) -> None:
        loss, alike = axes_at(figure, 0), axes_at(figure, 1)
        _draw(loss, alphas, [point.loss for point in record.points], joined, OKABE_ITO[1], "o", "loss")
        _draw(alike, alphas, [point.cka for point in record.points], joined, OKABE_ITO[0], "o", "CKA")
        debiased = [point.cka_debiased for point in record.points]
        _draw(alike, alphas, debiased, joined, OKABE_ITO[2], "s", "CKA, debiased")
        alike.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=2, borderaxespad=0, handletextpad=0.4)
        for axes, title in ((loss, "Loss"), (alike, "Similarity to the start")):
            axes.set_title(title, loc="left", pad=_LEGEND + 8)
            axes.set_xlabel("Share of the end, α")
            axes.set_xlim(-0.03, 1.03)
            axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
            axes.margins(y=0.08)

    label = f"Loss and similarity of {len(alphas)} networks between {record.start} and {record.end}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _draw(
    axes: Axes, alphas: Sequence[float], values: Curve, joined: Sequence[bool], colour: str, marker: str, name: str
) -> None:
    """Dots at what was measured; of the end points a thin level line, between which Proposition 8 looks."""
    look: dict[str, Any] = {"color": colour, "linewidth": 1.6, "zorder": 2}
    for index, is_joined in enumerate(joined):
        pair = values[index : index + 2]
        if is_joined and all(_is_finite(value) for value in pair):
            axes.plot(alphas[index : index + 2], [value or 0.0 for value in pair], **look)
    known = [(alpha, value) for alpha, value in zip(alphas, values, strict=True) if value is not None and _is_finite(value)]
    axes.plot(
        [alpha for alpha, _ in known],
        [value for _, value in known],
        marker,
        color=colour,
        markersize=5.5,
        markeredgecolor=PAPER,
        markeredgewidth=0.6,
        zorder=4,
        label=name,
    )
    for value in (values[0], values[-1]):
        if value is not None and _is_finite(value):
            axes.axhline(value, color=INK, alpha=0.18, linewidth=0.8, zorder=0)


def _is_finite(value: float | None) -> bool:
    return value is not None and math.isfinite(value)
