"""Mean ranks of several methods on one line; a bar joins methods whose difference may be chance."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossgraft.report.plots.style import INK, OKABE_ITO, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_WIDTH = 680
_SIDE = 195  # pixels for the names on either side
_ROW = 20
_BAR_ROW = 9
_TOP = 62  # pixels for the critical difference and the axis
_NAME_CHARACTERS = 20


def critical_difference_figure(
    methods: Sequence[str],
    mean_ranks: Sequence[float],
    cliques: Sequence[Sequence[int]],
    difference: float,
    *,
    identifier: str,
) -> Markup:
    """Draw the diagram of Demšar (2006): best on the left.

    Args:
        methods: Names.
        mean_ranks: Mean rank of each method, 1 = best.
        cliques: Groups of indices that the test cannot tell apart; each becomes a bar.
        difference: Nemenyi's critical difference, drawn to scale.
        identifier: Unique on the page.
    """
    order = sorted(range(len(methods)), key=lambda index: mean_ranks[index])
    num_left = (len(order) + 1) // 2
    bars = _BAR_ROW * len(cliques)
    height = _TOP + bars + _ROW * num_left + 14

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, _WIDTH)
        axes.set_ylim(height, 0)
        _draw_axis(axes, len(methods))
        _draw_difference(axes, difference, len(methods))
        for lane, clique in enumerate(cliques):
            ends = [_x(mean_ranks[index], len(methods)) for index in (clique[0], clique[-1])]
            at = _TOP + 8 + lane * _BAR_ROW
            axes.plot([ends[0] - 3, ends[1] + 3], [at, at], color=OKABE_ITO[0], linewidth=3.5, solid_capstyle="butt")
        for place, index in enumerate(order):
            on_left = place < num_left
            row = place if on_left else len(order) - 1 - place
            _draw_method(axes, methods[index], mean_ranks[index], len(methods), _TOP + bars + 16 + row * _ROW, on_left)

    listing = ", ".join(f"{methods[index]} {mean_ranks[index]:.2f}" for index in order)
    label = f"Mean ranks, best first: {listing}. Critical difference {difference:.3f}."
    return draw(_WIDTH, height, paint, identifier=identifier, label=label)


def _x(rank: float, num_methods: int) -> float:
    return _SIDE + (rank - 1) / (num_methods - 1) * (_WIDTH - 2 * _SIDE)


def _draw_axis(axes: Axes, num_methods: int) -> None:
    axes.plot([_SIDE, _WIDTH - _SIDE], [_TOP, _TOP], color=INK, linewidth=0.8)
    for rank in range(1, num_methods + 1):
        at = _x(rank, num_methods)
        axes.plot([at, at], [_TOP - 5, _TOP], color=INK, linewidth=0.8)
        axes.text(at, _TOP - 8, str(rank), ha="center", va="bottom", size=SMALL_PIXELS)
    axes.text(_SIDE - 12, _TOP - 8, "mean rank", ha="right", va="bottom", size=SMALL_PIXELS)


def _draw_difference(axes: Axes, difference: float, num_methods: int) -> None:
    end = _SIDE + difference / (num_methods - 1) * (_WIDTH - 2 * _SIDE)
    axes.plot([_SIDE, end], [24, 24], color=INK, linewidth=1.2)
    for at in (_SIDE, end):
        axes.plot([at, at], [20, 28], color=INK, linewidth=1.2)
    axes.text(_SIDE, 16, f"critical difference {difference:.3f}", va="bottom", size=SMALL_PIXELS)


def _draw_method(axes: Axes, name: str, rank: float, num_methods: int, at: float, on_left: bool) -> None:
    x = _x(rank, num_methods)
    edge = _SIDE - 14 if on_left else _WIDTH - _SIDE + 14
    axes.plot([x, x, edge], [_TOP, at, at], color=INK, linewidth=0.8, alpha=0.6)
    text = f"{shortened(name, _NAME_CHARACTERS)}  {rank:.2f}"
    axes.text(edge + (-4 if on_left else 4), at, text, ha="right" if on_left else "left", va="center")
