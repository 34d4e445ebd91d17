"""Figures of a ranking: scores with intervals, and mean ranks of several methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Affine2D, Transform, blended_transform_factory

from crossgraft.rank.record import RankingByScore, RankingRecord, RankRow, ScoreCell
from crossgraft.report.plots.svg import (
    CONTROL,
    CONTROL_ALPHA,
    INK,
    OKABE_ITO,
    PAPER,
    PIXELS_PER_CHARACTER,
    POINTS_PER_INCH,
    SMALL_PIXELS,
    Mark,
    draw,
    family_marks,
    frame,
    shortened,
)

_WIDTH = 680
_SMALL_SCREEN = 340
_SIDE = 195  # pixels for the names on either side
_NO_NAMES = 12  # where a side has none
_ROW = 20
_BAR_ROW = 9
_TOP = 62  # pixels for the critical difference and the axis
_NAME_CHARACTERS = 20


@dataclass(frozen=True)
class _Across:
    """From left to right, in pixels: names, the axis from rank 1 to that of the last of ``num_methods``, and names."""

    width: int
    left: int
    right: int
    num_methods: int

    def x(self, rank: float) -> float:
        """Where a mean rank is."""
        return self.left + (rank - 1) * self.step

    @property
    def step(self) -> float:
        """From one rank to the next."""
        return (self.width - self.left - self.right) / (self.num_methods - 1)


def critical_difference_figure(
    methods: Sequence[str],
    mean_ranks: Sequence[float],
    cliques: Sequence[Sequence[int]],
    difference: float,
    *,
    identifier: str,
    is_wide: bool = True,
) -> Markup:
    """Draw the diagram of Demšar (2006): best on the left.

    Args:
        methods: Names.
        mean_ranks: Mean rank of each method, 1 = best.
        cliques: Groups of indices that the test cannot tell apart; each becomes a bar.
        difference: Nemenyi's critical difference, drawn to scale.
        identifier: Unique on the page.
        is_wide: Else for the screen of a phone, with all names on one side.
    """
    order = sorted(range(len(methods)), key=lambda index: mean_ranks[index])
    num_left = (len(order) + 1) // 2 if is_wide else len(order)
    across = _Across(_WIDTH if is_wide else _SMALL_SCREEN, _SIDE, _SIDE if is_wide else _NO_NAMES, num_methods=len(methods))
    bars = _BAR_ROW * len(cliques)
    height = _TOP + bars + _ROW * num_left + 14

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, across.width)
        axes.set_ylim(height, 0)
        _draw_axis(axes, across)
        _draw_difference(axes, across, difference)
        for lane, clique in enumerate(cliques):
            ends = [across.x(mean_ranks[index]) for index in (clique[0], clique[-1])]
            at = _TOP + 8 + lane * _BAR_ROW
            axes.plot([ends[0] - 3, ends[1] + 3], [at, at], color=OKABE_ITO[0], linewidth=3.5, solid_capstyle="butt")
        for place, index in enumerate(order):
            on_left = place < num_left
            row = place if on_left else len(order) - 1 - place
            _draw_method(axes, across, methods[index], mean_ranks[index], _TOP + bars + 16 + row * _ROW, on_left=on_left)

    listing = ", ".join(f"{methods[index]} {mean_ranks[index]:.2f}" for index in order)
    label = f"Mean ranks, best first: {listing}. Critical difference {difference:.3f}."
    return draw(across.width, height, paint, identifier=identifier, label=label)


def _draw_axis(axes: Axes, across: _Across) -> None:
    axes.plot([across.x(1), across.x(across.num_methods)], [_TOP, _TOP], color=INK, linewidth=0.8)
    for rank in range(1, across.num_methods + 1):
        at = across.x(rank)
        axes.plot([at, at], [_TOP - 5, _TOP], color=INK, linewidth=0.8)
        axes.text(at, _TOP - 8, str(rank), ha="center", va="bottom", size=SMALL_PIXELS)
    axes.text(across.left - 12, _TOP - 8, "mean rank", ha="right", va="bottom", size=SMALL_PIXELS)


def _draw_difference(axes: Axes, across: _Across, difference: float) -> None:
    start, end = across.left, across.left + difference * across.step
    axes.plot([start, end], [24, 24], color=INK, linewidth=1.2)
    for at in (start, end):
        axes.plot([at, at], [20, 28], color=INK, linewidth=1.2)
    axes.text(start, 16, f"critical difference {difference:.3f}", va="bottom", size=SMALL_PIXELS)


def _draw_method(axes: Axes, across: _Across, name: str, rank: float, at: float, *, on_left: bool) -> None:
    x = across.x(rank)
    edge = across.left - 14 if on_left else across.width - across.right + 14
    axes.plot([x, x, edge], [_TOP, at, at], color=INK, linewidth=0.8, alpha=0.6)
    text = f"{shortened(name, _NAME_CHARACTERS)}  {rank:.2f}"
    axes.text(edge + (-4 if on_left else 4), at, text, ha="right" if on_left else "left", va="center")


_GAP_BEFORE_CONTROLS = 0.5  # rows
_LONGEST_NAME_BESIDE = 42  # characters
_RANK_COLUMN = 28  # pixels
_BRACKET_LANE = 11  # pixels
_LEGEND_LINE = 22  # pixels
_ABOVE_FIRST_ROW = 0.55  # rows, for the label of the shuffled line
_MARGIN = 0.04  # of the axis, on either side
_BELOW = 46  # pixels, for tick labels and the axis label


class _Layout(NamedTuple):
    """Pixels of one variant: names left of the axes on wide screens, above each interval on phones."""

    width: float
    row_height: float
    left: float
    longest_label: int
    names_above: bool
    legend_columns: int


def ranking_figure(record: RankingRecord, score: str, *, identifier: str, is_wide: bool = True) -> Markup:
    """Draw the order of the models by ``score``.

    Families differ by colour and marker, controls are hollow and faint, a dashed line marks the best value
    under shuffled labels, and brackets on the right join runs of ranks of which no two are separable.

    Args:
        record: The ranking.
        score: Name of one of its scores.
        identifier: Unique on the page.
        is_wide: Else for a screen of about 360 pixels.
    """
    ranking = record.ranking(score)
    title = record.title(score)
    marks = family_marks(model.family for model in record.models if model.role == "candidate")
    controls = any(row.role != "candidate" for row in ranking.rows)
    lanes = _lanes(inseparable_runs(ranking.rows))
    rows = _row_positions(ranking.rows)
    layout = _layout([row.model for row in ranking.rows], is_wide=is_wide)
    above = _LEGEND_LINE * math.ceil((len(marks) + controls) / layout.legend_columns) + 4
    middle = (rows[-1] + 1 + _ABOVE_FIRST_ROW) * layout.row_height
    height = above + middle + _BELOW
    across = layout.width - layout.left - 14 - _BRACKET_LANE * len(lanes)

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((layout.left / layout.width, _BELOW / height, across / layout.width, middle / height))
        axes.set_ylim(rows[-1] + 0.5, -0.5 - _ABOVE_FIRST_ROW)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel(f"{title} (larger is better)")
        axes.margins(x=_MARGIN)
        for position, row in zip(rows, ranking.rows, strict=True):
            mark = marks.get(record.model(row.model).family, CONTROL)
            _draw_row(axes, position, row, record.cell(row.model, score), mark, layout)
        _set_frame(axes, record, ranking)
        _draw_shuffled(axes, ranking)
        _draw_brackets(axes, lanes, rows, first_lane=layout.left + across + 10)
        _draw_legend(figure, marks, controls=controls, columns=layout.legend_columns)

    label = f"Ranking of {len(rows)} models by {title} with intervals; its table holds the same numbers."
    return draw(layout.width, height, paint, identifier=identifier, label=label)


def inseparable_runs(rows: Sequence[RankRow]) -> list[tuple[int, int]]:
    """First and last index of each longest run of rows of which no two are separable, if longer than one."""
    runs: list[tuple[int, int]] = []
    for first in range(len(rows)):
        last = first
        while last + 1 < len(rows) and all(_not_separable(rows[earlier], rows[last + 1]) for earlier in range(first, last + 1)):
            last += 1
        if last > first and not any(last <= known_last for _, known_last in runs):
            runs.append((first, last))
    return runs


def _not_separable(one: RankRow, other: RankRow) -> bool:
    return one.rank is not None and other.rank is not None and other.rank in one.not_separable_from


def _lanes(runs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Runs that overlap go side by side."""
    lanes: list[list[tuple[int, int]]] = []
    for run in runs:
        free = next((lane for lane in lanes if lane[-1][1] < run[0]), None)
        if free is None:
            lanes.append([run])
        else:
            free.append(run)
    return lanes


def _layout(names: Sequence[str], *, is_wide: bool) -> _Layout:
    if not is_wide:
        return _Layout(340, 42, left=_RANK_COLUMN, longest_label=36, names_above=True, legend_columns=2)
    longest = min(max(len(name) for name in names), _LONGEST_NAME_BESIDE)
    left = _RANK_COLUMN + longest * PIXELS_PER_CHARACTER + 14
    return _Layout(860, 27, left=left, longest_label=_LONGEST_NAME_BESIDE, names_above=False, legend_columns=4)


def _row_positions(rows: Sequence[RankRow]) -> list[float]:
    """Height of each row in units of rows, downwards, with a gap before the first control."""
    candidates = sum(row.role == "candidate" for row in rows)
    gap = _GAP_BEFORE_CONTROLS if 0 < candidates < len(rows) else 0.0
    return [index + (gap if row.role != "candidate" else 0.0) for index, row in enumerate(rows)]


def _across(axes: Axes) -> Transform:
    """Horizontal pixels from the left edge of the figure; vertical rows."""
    figure = cast("Figure", axes.get_figure(root=True))
    pixels = Affine2D().scale(1 / POINTS_PER_INCH) + figure.dpi_scale_trans
    return blended_transform_factory(pixels, axes.transData)


def _draw_row(axes: Axes, position: float, row: RankRow, cell: ScoreCell, mark: Mark, layout: _Layout) -> None:
    control = row.role != "candidate"
    dot_at = position + (0.22 if layout.names_above else 0)
    _draw_name(axes, position - (0.2 if layout.names_above else 0), row, layout)
    axes.axhline(dot_at, color=INK, alpha=0.12, linewidth=0.8, zorder=0)
    if cell.value is None or not math.isfinite(cell.value):
        axes.text(layout.left + 6, dot_at, "no value", transform=_across(axes), va="center", alpha=0.75, size=SMALL_PIXELS)
        return
    mark = CONTROL if control else mark
    look: dict[str, Any] = {"color": mark.colour, "alpha": CONTROL_ALPHA if control else 1.0}
    if cell.low is not None and cell.high is not None and math.isfinite(cell.high - cell.low):
        axes.plot([cell.low, cell.high], [dot_at, dot_at], linewidth=1.8, solid_capstyle="butt", **look)
    # A disc in the colour of the page keeps the interval out of the hollow marker.
    axes.plot(cell.value, dot_at, mark.marker, color=PAPER, zorder=3)
    axes.plot(cell.value, dot_at, mark.marker, fillstyle="none" if control else "full", zorder=4, **look)


def _set_frame(axes: Axes, record: RankingRecord, ranking: RankingByScore) -> None:
    """Around every value and the intervals of candidates; a far longer one of a control is cut off."""
    cells = [(row.role == "candidate", record.cell(row.model, ranking.score)) for row in ranking.rows]
    ends = [(is_candidate, end) for is_candidate, cell in cells for end in (cell.low, cell.high)]
    needed = [*(cell.value for _, cell in cells), *(end for is_candidate, end in ends if is_candidate)]
    limits = frame([*needed, ranking.best_shuffled], [end for is_candidate, end in ends if not is_candidate])
    if limits is not None and limits[0] < limits[1]:
        margin = _MARGIN * (limits[1] - limits[0])
        axes.set_xlim(limits[0] - margin, limits[1] + margin)


def _draw_name(axes: Axes, height: float, row: RankRow, layout: _Layout) -> None:
    alpha = 1.0 if row.role == "candidate" else 0.75
    rank = "–" if row.rank is None else str(row.rank)
    name = shortened(row.model, layout.longest_label)
    axes.text(18, height, rank, transform=_across(axes), ha="right", va="center", alpha=alpha)
    axes.text(_RANK_COLUMN, height, name, transform=_across(axes), va="center", alpha=alpha)


def _draw_shuffled(axes: Axes, ranking: RankingByScore) -> None:
    best_shuffled = ranking.best_shuffled
    if best_shuffled is None or not math.isfinite(best_shuffled):
        return
    axes.axvline(best_shuffled, color=INK, alpha=0.6, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    low, high = axes.get_xlim()
    in_right_half = best_shuffled > (low + high) / 2
    axes.annotate(
        f"best of {ranking.num_shuffled} shuffled-label values",
        (best_shuffled, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if in_right_half else 5, -2),
        textcoords="offset points",
        ha="right" if in_right_half else "left",
        va="top",
        alpha=0.75,
        size=SMALL_PIXELS,
    )


def _draw_brackets(axes: Axes, lanes: Sequence[Sequence[tuple[int, int]]], heights: Sequence[float], first_lane: float) -> None:
    """One bracket for each run; ``first_lane`` is in pixels from the left edge of the figure."""
    for index, lane in enumerate(lanes):
        x = first_lane + index * _BRACKET_LANE
        for first, last in lane:
            top, bottom = heights[first] - 0.2, heights[last] + 0.2
            axes.plot(
                [x - 4, x, x, x - 4],
                [top, top, bottom, bottom],
                color=INK,
                alpha=0.6,
                linewidth=1.1,
                transform=_across(axes),
                clip_on=False,
            )


def _draw_legend(figure: Figure, marks: Mapping[str, Mark], *, controls: bool, columns: int) -> None:
    handles = [
        Line2D([], [], linestyle="none", marker=mark.marker, color=mark.colour, label=shortened(family, 22))
        for family, mark in marks.items()
    ]
    if controls:
        hollow = Line2D([], [], linestyle="none", marker=CONTROL.marker, fillstyle="none", color=INK, label="control")
        handles.append(hollow)
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0, 1),
        ncols=columns,
        borderpad=0,
        borderaxespad=0,
        handletextpad=0.2,
        columnspacing=1.4,
    )
