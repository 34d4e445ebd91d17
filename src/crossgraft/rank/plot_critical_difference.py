"""Mean ranks of several methods on one line; a bar joins methods whose difference may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossgraft.report.plots.style import INK, OKABE_ITO, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

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
    is_narrow: bool = False,
) -> Markup:
    """Draw the diagram of Demšar (2006): best on the left.

    Args:
        methods: Names.
        mean_ranks: Mean rank of each method, 1 = best.
        cliques: Groups of indices that the test cannot tell apart; each becomes a bar.
        difference: Nemenyi's critical difference, drawn to scale.
        identifier: Unique on the page.
        is_narrow: For the screen of a phone, with all names on one side.
    """
    order = sorted(range(len(methods)), key=lambda index: mean_ranks[index])
    num_left = len(order) if is_narrow else (len(order) + 1) // 2
    across = _Across(
        _SMALL_SCREEN if is_narrow else _WIDTH, _SIDE, _NO_NAMES if is_narrow else _SIDE, num_methods=len(methods)
    )
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
            _draw_method(
                axes, across, methods[index], mean_ranks[index], _TOP + bars + 16 + row * _ROW, on_left=on_left
            )

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
