"""The features of images in one layer, along the first two principal components, one panel per network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.style import PIXELS_PER_CHARACTER, SMALL_PIXELS, Mark, family_marks, shortened
from crossgraft.report.plots.svg import draw

_WIDE, _NARROW = 828, 340  # pixels
_IN_ROW = 3
_PANEL_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 276, 52, 12, 26, 44
_NAME_HEIGHT, _LONGEST_NAME = 18, 22
MOST_NAMED_CLASSES = 12
"""With more classes, none is named: nobody could tell their marks apart."""


class Panel(NamedTuple):
    """One network: its name, one point per image, and the share of the variance along each axis."""

    name: str
    points: Sequence[tuple[float, float]]
    shares: tuple[float, float]


def layer_pca_figure(
    panels: Sequence[Panel],
    classes: Sequence[int],
    class_names: Sequence[str],
    *,
    identifier: str,
    is_wide: bool = True,
) -> Markup:
    """Draw ``panels`` in rows, with one mark per class.

    Args:
        panels: Panels in the order of the table; each with the same images.
        classes: Class of each image.
        class_names: Names of all classes.
        identifier: Unique on the page.
        is_wide: Whether three panels stand beside each other, or one.
    """
    width, in_row = (_WIDE, min(_IN_ROW, len(panels))) if is_wide else (_NARROW, 1)
    present = sorted(set(classes))
    marks = dict(zip(present, family_marks(map(str, present)).values(), strict=True))
    named = present if len(present) <= MOST_NAMED_CLASSES else []
    names = [shortened(class_names[each], _LONGEST_NAME) for each in named]
    name_width = max((len(name) for name in names), default=1) * PIXELS_PER_CHARACTER + 30
    columns = max(1, min(len(named), int(width / name_width)))
    legend_height = _NAME_HEIGHT * math.ceil(len(named) / columns) + (6 if named else 0)
    height = legend_height + _PANEL_HEIGHT * math.ceil(len(panels) / in_row)
    panel_width = width / max(in_row, 2) if is_wide else width

    def paint(figure: Figure) -> None:
        for place, panel in enumerate(panels):
            left = panel_width * (place % in_row) + _LEFT
            bottom = height - legend_height - _PANEL_HEIGHT * (place // in_row + 1) + _BOTTOM
            size = (panel_width - _LEFT - _RIGHT, _PANEL_HEIGHT - _TOP - _BOTTOM)
            axes = figure.add_axes((left / width, bottom / height, size[0] / width, size[1] / height))
            _draw(axes, panel, classes, marks, room=int(panel_width / PIXELS_PER_CHARACTER))
        if named:
            look: dict[str, Any] = {"linestyle": "none", "markersize": 5.5}
            figure.legend(
                [Line2D([], [], color=marks[each].colour, marker=marks[each].marker, **look) for each in named],
                names,
                loc="upper left",
                bbox_to_anchor=(0, 1),
                ncols=columns,
                borderaxespad=0,
                handletextpad=0.2,
                columnspacing=1.0,
                fontsize=SMALL_PIXELS,
            )

    label = f"First two principal components of a layer, one panel each: {', '.join(panel.name for panel in panels)}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _draw(axes: Axes, panel: Panel, classes: Sequence[int], marks: dict[int, Mark], *, room: int) -> None:
    """One unit is as long on both axes, so that shapes are those of the features."""
    axes.set_title(shortened(panel.name, room - 4), loc="left", pad=6)
    axes.set_xlabel(f"PC 1 ({_percent(panel.shares[0])} of the variance)", fontsize=SMALL_PIXELS, labelpad=3)
    axes.set_ylabel(f"PC 2 ({_percent(panel.shares[1])})", fontsize=SMALL_PIXELS, labelpad=3)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.set_aspect("equal", adjustable="datalim")
    for each, mark in marks.items():
        points = [point for point, of_image in zip(panel.points, classes, strict=True) if of_image == each]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        axes.plot(
            xs, ys, mark.marker, color=mark.colour, markersize=3.6, alpha=0.75, markeredgewidth=0, linestyle="none"
        )
    axes.margins(0.06)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"
