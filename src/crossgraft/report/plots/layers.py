"""Figures of layers: similarity layer by layer, all pairs of layers, principal components of one."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, MaxNLocator

from crossgraft.report.plots.svg import (
    FONT_PIXELS,
    INK,
    MARKERS,
    OKABE_ITO,
    PIXELS_PER_CHARACTER,
    SMALL_PIXELS,
    Mark,
    draw,
    family_marks,
    shortened,
)

_LEFT, _RIGHT, _BELOW, _LEGEND_ROW = 54, 16, 30, 18  # pixels
_HEIGHT = 260  # without names of layers and legend
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


def layer_curves_figure(layers: Sequence[str], curves: Sequence[LayerCurve], *, identifier: str, width: float) -> Markup:
    """Draw the mean CCA of each layer with its spread as bars.

    Args:
        layers: Names of the layers, first to last.
        curves: Curves with as many values.
        identifier: Unique on the page.
        width: Width in CSS pixels.
    """
    names = [shortened(name, _LONGEST_LAYER) for name in layers]
    flat = len(names) * max(len(name) for name in names) * PIXELS_PER_CHARACTER < width - _LEFT - _RIGHT
    below = _BELOW if flat else max(len(name) for name in names) * PIXELS_PER_CHARACTER + 12
    in_row = 2 if width >= 500 else 1
    top = 8 + _LEGEND_ROW * math.ceil(len(curves) / in_row)
    tall = _HEIGHT + below + top
    most = int(width / in_row / PIXELS_PER_CHARACTER) - 6

    def paint(figure: Figure) -> None:
        size = ((width - _LEFT - _RIGHT) / width, _HEIGHT / tall)
        axes = figure.add_axes((_LEFT / width, below / tall, *size))
        axes.set(ylim=(-0.02, 1.02), xlim=(-0.3, len(layers) - 0.7), ylabel="Mean CCA")
        axes.xaxis.set_major_locator(FixedLocator(list(range(len(layers)))))
        axes.set_xticklabels(names, rotation=0 if flat else 90, size=SMALL_PIXELS)
        axes.yaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
        for index, curve in enumerate(curves):
            colour = INK if curve.is_untrained else OKABE_ITO[index % len(OKABE_ITO)]
            values = [math.nan if value is None else value for value in curve.values]
            axes.errorbar(
                range(len(layers)),
                values,
                yerr=[spread or 0.0 for spread in curve.spreads],
                color=colour,
                alpha=0.6 if curve.is_untrained else 1,
                linestyle=(0, (2, 2)) if curve.is_untrained else "-",
                marker=MARKERS[index % len(MARKERS)],
                markersize=5,
                linewidth=1.5,
                elinewidth=1,
                label=shortened(curve.name, most),
            )
        axes.legend(loc="lower left", bbox_to_anchor=(-0.03, 1), ncols=in_row, borderaxespad=0.2, handlelength=2.4)

    drawn = ", ".join(curve.name for curve in curves)
    return draw(width, tall, paint, identifier=identifier, label=f"Mean CCA by layer: {drawn}.")


_LONGEST_NAME, _LONGEST_IF_NARROW = 22, 12
_WIDE, _SMALL_SCREEN = 410, 340
_STRONGEST = 0.75  # opacity of a similarity of 1: text stays readable on it in light and dark
_LARGEST_CELL, _WITH_NUMBER = 44, 24
_TITLE = 24
_FITTING, _SMALLER = (3, 0.8)  # characters that fit the smallest cell with a number, and how much smaller more of them are


def layer_grid_figure(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    row_label: str,
    column_label: str,
    identifier: str,
    is_narrow: bool = False,
) -> Markup:
    """Draw a cell for each pair of layers, the stronger the more alike they are; the first layers stand at the bottom left.

    Args:
        title: What is compared.
        rows: Layers of the first network, first to last.
        columns: Layers of the second.
        values: By row, then column; at most 1, and below 0 drawn in another colour.
        row_label: Name of the first network.
        column_label: Name of the second.
        identifier: Unique on the page.
        is_narrow: For the screen of a phone: shorter names and smaller cells.
    """
    longest = _LONGEST_IF_NARROW if is_narrow else _LONGEST_NAME
    row_names, column_names = ([shortened(name, longest) for name in names] for names in (rows, columns))
    left = max(len(name) for name in (*row_names, "")) * PIXELS_PER_CHARACTER + 30
    below = max(len(name) for name in (*column_names, "")) * PIXELS_PER_CHARACTER + 30
    room = (_SMALL_SCREEN if is_narrow else _WIDE) - left - 8
    cell = min(_LARGEST_CELL, room / max(len(columns), 1))
    width, height = left + cell * len(columns) + 8, _TITLE + cell * len(rows) + below
    width = max(width, min(_SMALL_SCREEN, len(title) * PIXELS_PER_CHARACTER + 8))

    def paint(figure: Figure) -> None:
        size = (cell * len(columns) / width, cell * len(rows) / height)
        axes = figure.add_axes((left / width, below / height, *size))
        axes.set(xlim=(0, len(columns)), ylim=(0, len(rows)))
        axes.set_axis_off()
        for index, row in enumerate(values):
            _draw_row(axes, index, row, cell)
        for index, name in enumerate(row_names):
            axes.text(-6 / cell, index + 0.5, name, ha="right", va="center", size=SMALL_PIXELS)
        for index, name in enumerate(column_names):
            axes.text(index + 0.5, -6 / cell, name, ha="center", va="top", rotation=90, size=SMALL_PIXELS)
        most = int(width / PIXELS_PER_CHARACTER)
        figure.text(4 / width, 1 - 4 / height, shortened(title, most), va="top", size=FONT_PIXELS)
        across = shortened(column_label, int(cell * len(columns) / PIXELS_PER_CHARACTER) + 4)
        figure.text((left + cell * len(columns) / 2) / width, 2 / height, across, ha="center", size=SMALL_PIXELS)
        up = shortened(row_label, int(cell * len(rows) / PIXELS_PER_CHARACTER) + 4)
        middle = (below + cell * len(rows) / 2) / height
        figure.text(2 / width, middle, up, va="center", rotation=90, size=SMALL_PIXELS)

    label = f"{title}: similarity of {len(rows)} layers of {row_label} and {len(columns)} of {column_label}."
    return draw(width, height, paint, identifier=identifier, label=label, is_filled=True)


def _draw_row(axes: Axes, row: int, values: Sequence[float], cell: float) -> None:
    for column, value in enumerate(values):
        corner, side = (column + 1 / cell, row + 1 / cell), 1 - 2 / cell
        axes.add_patch(Rectangle(corner, side, side, color=INK, alpha=0.05, linewidth=0))
        shade = _STRONGEST * min(abs(value), 1)
        colour = OKABE_ITO[0] if value >= 0 else OKABE_ITO[1]
        axes.add_patch(Rectangle(corner, side, side, color=colour, alpha=shade, linewidth=0))
        if cell >= _WITH_NUMBER:
            text = _in_a_cell(value)
            size = (SMALL_PIXELS - 1) * (_SMALLER if len(text) > _FITTING else 1)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=size)


def _in_a_cell(value: float) -> str:
    """Two decimals without the zero before them.

    >>> _in_a_cell(0.954), _in_a_cell(-0.021), _in_a_cell(-0.001), _in_a_cell(1.0)
    ('.95', '−.02', '.00', '1.00')
    """
    rounded = round(value, 2) + 0.0  # no minus before a zero
    return f"{rounded:.2f}".replace("-", "\N{MINUS SIGN}").replace("0.", ".", 1)


_LAYER_PCA_WIDE, _NARROW = 828, 340  # pixels
_IN_ROW = 3
_PANEL_HEIGHT, _LAYER_PCA_LEFT, _LAYER_PCA_RIGHT, _TOP, _BOTTOM = 276, 52, 12, 26, 44
_NAME_HEIGHT, _LAYER_PCA_LONGEST_NAME = 18, 22
MOST_NAMED_CLASSES = 12
"""With more classes, none is named: nobody could tell their marks apart."""


class Panel(NamedTuple):
    """One network.

    Attributes:
        name: For the title.
        points: One per image.
        shares: Share of the variance along each axis.
        axes: What the axes are, where they are no principal components.
    """

    name: str
    points: Sequence[tuple[float, float]]
    shares: tuple[float, float]
    axes: tuple[str, str] | None = None


def layer_pca_figure(
    panels: Sequence[Panel],
    classes: Sequence[int],
    class_names: Sequence[str],
    *,
    identifier: str,
    is_wide: bool = True,
    hollow: Collection[int] = (),
    of: str = "a layer",
) -> Markup:
    """Draw ``panels`` in rows, with one mark per class.

    Args:
        panels: Panels in the order of the table; each with the same images.
        classes: Class of each image.
        class_names: Names of all classes.
        identifier: Unique on the page.
        is_wide: Whether three panels stand beside each other, or one.
        hollow: Places of images with a hollow mark.
        of: What is drawn, for screen readers.
    """
    width, in_row = (_LAYER_PCA_WIDE, min(_IN_ROW, len(panels))) if is_wide else (_NARROW, 1)
    present = sorted(set(classes))
    marks = dict(zip(present, family_marks(map(str, present)).values(), strict=True))
    named = present if len(present) <= MOST_NAMED_CLASSES else []
    names = [shortened(class_names[label], _LAYER_PCA_LONGEST_NAME) for label in named]
    name_width = max((len(name) for name in names), default=1) * PIXELS_PER_CHARACTER + 30
    columns = max(1, min(len(named), int(width / name_width)))
    legend_height = _NAME_HEIGHT * math.ceil(len(named) / columns) + (6 if named else 0)
    height = legend_height + _PANEL_HEIGHT * math.ceil(len(panels) / in_row)
    panel_width = width / max(in_row, 2) if is_wide else width

    def paint(figure: Figure) -> None:
        for index, panel in enumerate(panels):
            left = panel_width * (index % in_row) + _LAYER_PCA_LEFT
            bottom = height - legend_height - _PANEL_HEIGHT * (index // in_row + 1) + _BOTTOM
            size = (panel_width - _LAYER_PCA_LEFT - _LAYER_PCA_RIGHT, _PANEL_HEIGHT - _TOP - _BOTTOM)
            axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
            _draw(axes, panel, classes, marks, hollow, room=int(panel_width / PIXELS_PER_CHARACTER))
        if named:
            look: dict[str, Any] = {"linestyle": "none", "markersize": 5.5}
            figure.legend(
                [Line2D([], [], color=marks[label].colour, marker=marks[label].marker, **look) for label in named],
                names,
                loc="upper left",
                bbox_to_anchor=(0, 1),
                ncols=columns,
                borderaxespad=0,
                handletextpad=0.2,
                columnspacing=1.0,
                fontsize=SMALL_PIXELS,
            )

    label = f"First two principal components of {of}, one panel each: {', '.join(panel.name for panel in panels)}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _draw(
    axes: Axes, panel: Panel, classes: Sequence[int], marks: dict[int, Mark], hollow: Collection[int], *, room: int
) -> None:
    """One unit is as long on both axes, so that shapes are those of the features."""
    axes.set_title(shortened(panel.name, room - 4), loc="left", pad=6)
    along, up = panel.axes or (f"PC 1 ({_percent(panel.shares[0])} of the variance)", f"PC 2 ({_percent(panel.shares[1])})")
    axes.set_xlabel(along, fontsize=SMALL_PIXELS, labelpad=3)
    axes.set_ylabel(up, fontsize=SMALL_PIXELS, labelpad=3)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_aspect("equal", adjustable="datalim")
    look: dict[str, Any] = {"alpha": 0.75, "linestyle": "none"}
    for label, mark in marks.items():
        for is_hollow in (False, True) if hollow else (False,):
            places = [place for place, of_image in enumerate(classes) if of_image == label and (place in hollow) == is_hollow]
            xs, ys = ([panel.points[place][axis] for place in places] for axis in (0, 1))
            look["markeredgewidth"], look["fillstyle"] = (1, "none") if is_hollow else (0, "full")
            axes.plot(xs, ys, mark.marker, color=mark.colour, markersize=4.6 if is_hollow else 3.6, **look)
    axes.margins(0.06)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
