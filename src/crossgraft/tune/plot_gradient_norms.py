"""How long the gradient of each building block is from step to step: one curve per block, from the first to the last."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator

from crossgraft.report.plots.style import OKABE_ITO, PIXELS_PER_CHARACTER, shortened
from crossgraft.report.plots.svg import draw

_WIDE, _NARROW = 828, 400  # pixels
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 28, 46
_PLOT_HEIGHT = 270
_NAME_HEIGHT, _NAMES_WIDTH = 16, 190
_NAMES_IN_ROW = 2  # on a narrow screen
MOST_NAMED_BLOCKS = 24
"""Blocks that are named; with more, those at regular distances."""
_BLUE, _RED, _GREEN, _, _ORANGE, _ = OKABE_ITO
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 1.5)), (0, (1.5, 1.5)))


class BlockCurve(NamedTuple):
    """One block: its name, and one value per step that is drawn; None and 0 leave a gap."""

    name: str
    values: Sequence[float | None]


def gradient_norms_figure(
    curves: Sequence[BlockCurve], steps: Sequence[int], *, y_label: str, identifier: str, is_wide: bool = True
) -> Markup:
    """Draw ``curves`` over ``steps`` on a logarithmic axis.

    Colours run from the first block to the last, and neighbours differ in their dashes.

    Args:
        curves: Curves from the first block to the last; of more than ``MOST_NAMED_BLOCKS``, some have no name.
        steps: Steps of the values.
        y_label: Quantity.
        identifier: Unique on the page.
        is_wide: Whether names stand beside the drawing; on a narrow screen they stand below it.
    """
    styles = _styles(len(curves))
    named = _named(len(curves))
    width = _WIDE if is_wide else _NARROW
    names_height = _NAME_HEIGHT * (len(named) if is_wide else math.ceil(len(named) / _NAMES_IN_ROW))
    plot_height = max(_PLOT_HEIGHT, names_height) if is_wide else _PLOT_HEIGHT
    height = plot_height + _TOP + _BOTTOM + (0 if is_wide else names_height)
    plot_width = width - _LEFT - _RIGHT - (_NAMES_WIDTH if is_wide else 0)

    def paint(figure: Figure) -> None:
        bottom = height - _TOP - plot_height
        axes = figure.add_axes((_LEFT / width, bottom / height, plot_width / width, plot_height / height))
        axes.set_xlabel("Step")
        figure.text(4 / width, 1 - 4 / height, shortened(y_label, int(width / PIXELS_PER_CHARACTER)), va="top")
        for curve, (colour, dashes) in zip(curves, styles, strict=True):
            heights = [value if value is not None and value > 0 else math.nan for value in curve.values]
            axes.plot(steps, heights, color=colour, linestyle=dashes, linewidth=1.5)
        _scale(axes, curves, steps)
        axes.legend(
            [Line2D([], [], color=styles[place][0], linestyle=styles[place][1]) for place in named],
            [shortened(curves[place].name, 20) for place in named],
            loc="upper left" if is_wide else "lower left",
            bbox_to_anchor=(1.02, 1.01) if is_wide else (-_LEFT / plot_width, -bottom / plot_height),
            ncols=1 if is_wide else _NAMES_IN_ROW,
            borderaxespad=0,
            handlelength=2.2,
            labelspacing=0.25,
            columnspacing=0.8,
        )

    label = f"{y_label} by step: {', '.join(curve.name for curve in curves)}."
    return draw(width, height, paint, identifier=identifier, label=label)


def _styles(number: int) -> list[tuple[str, Any]]:
    """Colour and dashes of each block; the middle of the range is neither pale on white nor dark on black."""
    colours = LinearSegmentedColormap.from_list("blocks", [_BLUE, _GREEN, _ORANGE, _RED])
    shares = [place / max(number - 1, 1) for place in range(number)]
    return [(to_hex(colours(share)), _DASHES[place % len(_DASHES)]) for place, share in enumerate(shares)]


def _named(number: int) -> list[int]:
    step = math.ceil(number / MOST_NAMED_BLOCKS)
    return list(range(0, number, step))


def _scale(axes: Axes, curves: Sequence[BlockCurve], steps: Sequence[int]) -> None:
    axes.set_yscale("log")
    known = [value for curve in curves for value in curve.values if value is not None and value > 0]
    if known:
        low, high = min(known), max(known)
        room = max((high / low) ** 0.05, 1.1)
        axes.set_ylim(low / room, high * room)
        decades = math.log10(high / low)
        subs = (1, 1.5, 2, 3, 4, 5, 7) if decades < 0.7 else (1, 2, 5) if decades < 1.5 else (1,)
        axes.yaxis.set_major_locator(LogLocator(subs=subs))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlim(steps[0], max(steps[-1], steps[0] + 1))
