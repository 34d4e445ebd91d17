"""Figures of few-shot episodes: the support set of one as a head sees it, and accuracy over the gap, where that is set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from crossgraft.fewshot.look import AS_IT_IS
from crossgraft.fewshot.record import EpisodeLookRecord, GapSummary, HeadLookRecord, Moved
from crossgraft.report.plots.layers import MOST_NAMED_CLASSES
from crossgraft.report.plots.svg import (
    INK,
    OKABE_ITO,
    PAPER,
    PIXELS_PER_CHARACTER,
    SMALL_PIXELS,
    Mark,
    draw,
    family_marks,
    shortened,
)

_WIDE, _NARROW = 828, 340  # pixels
_NAME_HEIGHT, _LONGEST_NAME = 18, 22
_LEVELS = 8


class _PanelPixels(NamedTuple):
    """Pixels of one panel, and of what is around its axes."""

    height: int
    left: int
    right: int
    bottom: int
    top: int = 26


_OF_LOOK, _OF_GAPS = _PanelPixels(276, 66, 12, 44), _PanelPixels(280, 62, 14, 46)


def _panels(figure: Figure, size: tuple[int, int], count: int, legend: int, panel: _PanelPixels) -> list[Axes]:
    """Beside each other in a wide figure, below each other in a narrow one; under a legend of this height."""
    (width, height), is_wide = size, size[0] == _WIDE
    own, panels = width / count if is_wide else width, list[Axes]()
    for place in range(count):
        left = (own * place if is_wide else 0) + panel.left
        bottom = height - legend - panel.height * (1 if is_wide else place + 1) + panel.bottom
        box = (own - panel.left - panel.right, panel.height - panel.top - panel.bottom)
        panels.append(figure.add_axes((left / width, bottom / height, box[0] / width, box[1] / height)))
    return panels


class _Legend(NamedTuple):
    """Which classes are named, in how many columns, and how high that is."""

    named: list[int]
    names: list[str]
    columns: int
    height: int


def episode_look_figure(look: EpisodeLookRecord, head: HeadLookRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """Three panels: images and prototypes in a plane, cosines of each image to each prototype, and the loss by the gap.

    Args:
        look: The episode.
        head: One of its heads.
        identifier: Unique on the page.
        is_wide: Whether the panels stand beside each other, or below.
    """
    width = _WIDE if is_wide else _NARROW
    legend = _legend(look, width)
    marks = list(family_marks(look.class_names).values())
    height = legend.height + _OF_LOOK.height * (1 if is_wide else 3)

    def paint(figure: Figure) -> None:
        plane, cosines, shift = _panels(figure, (width, height), 3, legend.height, _OF_LOOK)
        _draw_plane(plane, look, head, marks)
        _draw_cosines(cosines, look, head)
        _draw_shift(shift, head)
        if legend.named:
            _draw_legend(figure, legend, marks)

    label = (
        f"Images and prototypes as {head.head} sees them: in a plane, their cosines, and the loss when the gap of "
        f"{head.gap_by_instance:.2f} is moved."
    )
    return draw(width, height, paint, identifier=identifier, label=label)


def _legend(look: EpisodeLookRecord, width: float) -> _Legend:
    named = list(range(len(look.class_names))) if len(look.class_names) <= MOST_NAMED_CLASSES else []
    names = [shortened(look.class_names[each], _LONGEST_NAME) for each in named]
    widest = max((len(name) for name in names), default=1) * PIXELS_PER_CHARACTER + 30
    columns = max(1, min(len(named), int(width / widest)))
    return _Legend(named, names, columns, _NAME_HEIGHT * math.ceil(len(named) / columns) + (6 if named else 0))


def _draw_legend(figure: Figure, legend: _Legend, marks: list[Mark]) -> None:
    figure.legend(
        [
            Line2D([], [], color=marks[each].colour, marker=marks[each].marker, linestyle="none", markersize=5.5)
            for each in legend.named
        ],
        legend.names,
        loc="upper left",
        bbox_to_anchor=(0, 1),
        ncols=legend.columns,
        borderaxespad=0,
        handletextpad=0.2,
        columnspacing=1.0,
        fontsize=SMALL_PIXELS,
    )


def _draw_plane(axes: Axes, look: EpisodeLookRecord, head: HeadLookRecord, marks: list[Mark]) -> None:
    axes.set_title("Images, and prototypes (outlined)", loc="left", pad=6)
    axes.set_xlabel(f"PC 1 ({head.shares[0]:.0%} of the variance)", fontsize=SMALL_PIXELS, labelpad=3)
    axes.set_ylabel(f"PC 2 ({head.shares[1]:.0%})", fontsize=SMALL_PIXELS, labelpad=3)
    for setter in (axes.xaxis, axes.yaxis):
        setter.set_major_locator(MaxNLocator(4))
    axes.set_aspect("equal", adjustable="datalim")
    for number, mark in enumerate(marks):
        own = [point for point, of in zip(head.images, look.classes, strict=True) if of == number]
        xs, ys = [x for x, _ in own], [y for _, y in own]
        axes.plot(xs, ys, mark.marker, color=mark.colour, markersize=4, alpha=0.7, markeredgewidth=0, linestyle="none")
        x, y = head.prototypes[number]
        axes.plot([x], [y], mark.marker, color=mark.colour, markersize=9, markeredgecolor=INK, markeredgewidth=1.4, zorder=3)
    axes.margins(0.08)


def _draw_cosines(axes: Axes, look: EpisodeLookRecord, head: HeadLookRecord) -> None:
    """One row per image, one column per prototype; the stronger the colour, the larger the cosine."""
    values = np.asarray(head.similarities)
    rows, columns = values.shape
    least, most = float(values.min()), float(values.max())
    axes.set_title("Cosines to prototypes", loc="left", pad=6)
    axes.set_xlabel(f"Prototype; {_shades_in_words(least, most)}", fontsize=SMALL_PIXELS, labelpad=10)
    axes.set_ylabel("Image, by class", fontsize=SMALL_PIXELS, labelpad=10)
    levels = np.minimum((_LEVELS * (values - least) / (most - least or 1.0)).astype(int), _LEVELS - 1)
    for level in range(_LEVELS):
        squares = [_square(column, row) for row, column in np.argwhere(levels == level).tolist()]
        if squares:
            shade = (level + 1) / _LEVELS
            shape = Path.make_compound_path(*squares)
            axes.add_patch(PathPatch(shape, facecolor=OKABE_ITO[0], alpha=shade, linewidth=0))
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_xticks([])
    axes.set_yticks([number for number in range(1, rows) if look.classes[number] != look.classes[number - 1]])
    axes.set_yticklabels([])


def _shades_in_words(least: float, most: float) -> str:
    """True on a white page and on a dark one.

    >>> _shades_in_words(-0.2, 0.65)
    'from −0.20 (faint) to 0.65'
    """
    return f"from {least:.2f} (faint) to {most:.2f}".replace("-", "\N{MINUS SIGN}")


def _square(column: float, row: float) -> Path:
    corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1), (column, row)]
    return Path(corners, [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])


def _draw_shift(axes: Axes, head: HeadLookRecord) -> None:
    """Zero is what the head gives; plus one doubles the gap about, minus one closes it."""
    axes.set_title("Loss when the gap is moved", loc="left", pad=6)
    axes.set_xlabel("Shift, in gaps (−1 closes it)", fontsize=SMALL_PIXELS, labelpad=3)
    axes.set_ylabel("Symmetric cross-entropy", fontsize=SMALL_PIXELS, labelpad=3)
    for setter in (axes.xaxis, axes.yaxis):
        setter.set_major_locator(MaxNLocator(4))
    axes.plot(head.shifts, head.losses, color=OKABE_ITO[0], linewidth=1.6)
    now = head.losses[head.shifts.index(0.0)]
    best = int(np.argmin(head.losses))
    axes.plot([0], [now], "o", color=OKABE_ITO[0], markersize=6)
    axes.plot([head.shifts[best]], [head.losses[best]], "o", color=OKABE_ITO[1], markersize=6, markerfacecolor=PAPER)
    axes.margins(0.06)


_TITLES: dict[Moved, str] = {"features": "Images and prototypes moved", "maps": "CoPA: both maps moved apart"}
_ACROSS: dict[Moved, str] = {"features": "Shift, in gaps (−1 closes it)", "maps": "Share of their difference (0: one map)"}
_MARKERS = "osD^vP"
_LONGEST_HEAD = 34


def gaps_figure(points: Sequence[GapSummary], *, identifier: str, is_wide: bool = True) -> Markup:
    """Accuracy of each head over its gap: features moved along the gap, and beside it the maps of CoPA moved apart.

    Args:
        points: Means over episodes.
        identifier: Unique on the page.
        is_wide: Whether panels stand beside each other, or below.
    """
    panels: list[Moved] = [moved for moved in _TITLES if any(point.moved == moved for point in points)]
    heads = list(dict.fromkeys(point.head for point in points))
    width, in_one_row = _WIDE if is_wide else _NARROW, is_wide and len(heads) <= 4
    legend = 6 + _NAME_HEIGHT * (1 if in_one_row else len(heads))
    height = legend + _OF_GAPS.height * (1 if is_wide else len(panels))

    def paint(figure: Figure) -> None:
        for axes, moved in zip(_panels(figure, (width, height), len(panels), legend, _OF_GAPS), panels, strict=True):
            _draw_panel(axes, moved, [point for point in points if point.moved == moved], heads)
        handles = [Line2D([], [], **_look(heads.index(head))) for head in heads]
        names = [f"{shortened(head, _LONGEST_HEAD)} (gap {_usual(points, head, 'features').gap:.2f})" for head in heads]
        figure.legend(
            handles,
            names,
            loc="upper left",
            bbox_to_anchor=(0, 1),
            ncols=len(heads) if in_one_row else 1,
            borderaxespad=0,
            fontsize=SMALL_PIXELS,
        )

    label = "Accuracy on queries over the gap of images and prototypes."
    return draw(width, height, paint, identifier=identifier, label=label)


def _usual(points: Sequence[GapSummary], head: str, moved: Moved) -> GapSummary:
    return next(point for point in points if (point.head, point.moved, point.at) == (head, moved, AS_IT_IS[moved]))


def _look(number: int) -> dict[str, Any]:
    colour = OKABE_ITO[number % len(OKABE_ITO)]
    return {"color": colour, "marker": _MARKERS[number % len(_MARKERS)], "markersize": 4.5, "linewidth": 1.4}


def _draw_panel(axes: Axes, moved: Moved, points: Sequence[GapSummary], heads: Sequence[str]) -> None:
    axes.set_title(_TITLES[moved], loc="left", pad=6)
    axes.set_xlabel(_ACROSS[moved], fontsize=SMALL_PIXELS, labelpad=3)
    axes.set_ylabel("Accuracy on queries", fontsize=SMALL_PIXELS, labelpad=3)
    for setter in (axes.xaxis, axes.yaxis):
        setter.set_major_locator(MaxNLocator(5))
    for number, head in enumerate(heads):
        own = [point for point in points if point.head == head]
        if not own:
            continue
        look = _look(number)
        axes.plot([point.at for point in own], [point.accuracy for point in own], **look)
        usual = _usual(own, head, moved)
        axes.plot(
            [usual.at], [usual.accuracy], look["marker"], color=look["color"], markerfacecolor=PAPER, markersize=8, zorder=3
        )
    axes.margins(0.06)
