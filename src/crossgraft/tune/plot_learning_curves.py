"""How loss and metric went on in a training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crossgraft.report.plots.scatter import TICK_STEPS
from crossgraft.report.plots.style import INK, OKABE_ITO, PAPER, PIXELS_PER_CHARACTER, shortened
from crossgraft.report.plots.svg import draw

_WIDTH, _WIDE, _HEIGHT = 400, 828, 270  # two beside each other are as wide as a wide one
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 56, 46
_MOST_MARKED = 40  # epochs; more dots than this are a thick line


class LearningCurve(NamedTuple):
    """One quantity, one value per epoch or step; those without a value leave a gap."""

    name: str
    values: Sequence[float | None]
    faint: bool = False


def learning_curves_figure(
    curves: Sequence[LearningCurve],
    *,
    y_label: str,
    best_epoch: int | None,
    head_epochs: int,
    identifier: str,
    is_wide: bool = False,
    target: float | None = None,
    steps: Sequence[int] | None = None,
) -> Markup:
    """Draw ``curves`` over the epochs, which count from 1, or over steps.

    Args:
        curves: Curves, at most six that are not faint; faint ones are drawn thin, without a name.
        y_label: Quantity and unit.
        best_epoch: Gets a vertical line: its weights were kept. None: no line.
        head_epochs: The first epochs, shaded: only the head was trained. 0: none.
        identifier: Unique on the page.
        is_wide: Whether the drawing stands alone.
        target: Value with a dotted horizontal line: it was asked for. None: no line.
        steps: Step of each value, where they are not epochs.
    """
    width, unit = _WIDE if is_wide else _WIDTH, "step" if steps else "epoch"

    def paint(figure: Figure) -> None:
        size = ((width - _LEFT - _RIGHT) / width, (_HEIGHT - _BOTTOM - _TOP) / _HEIGHT)
        axes = figure.add_axes((_LEFT / width, _BOTTOM / _HEIGHT, *size))
        axes.set_xlabel(unit.capitalize())
        figure.text(4 / width, 1 - 4 / _HEIGHT, shortened(y_label, int(width / PIXELS_PER_CHARACTER)), va="top")
        axes.xaxis.set_major_locator(MaxNLocator(6 * width // _WIDTH, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=TICK_STEPS))
        if head_epochs:
            axes.axvspan(0.5, head_epochs + 0.5, color=INK, alpha=0.07, linewidth=0)
        if best_epoch is not None:
            axes.axvline(best_epoch, color=INK, alpha=0.5, linewidth=1, linestyle=(0, (4, 3)))
        if target is not None:
            axes.axhline(target, color=INK, alpha=0.6, linewidth=1.2, linestyle=(0, (1, 2)))
        styles = iter([(OKABE_ITO[0], "o"), (OKABE_ITO[1], "s"), *((c, "^") for c in OKABE_ITO[2:])])
        for curve in curves:
            _draw_curve(
                axes, curve, steps or range(1, len(curve.values) + 1), ("", "") if curve.faint else next(styles)
            )
        axes.set_xlim(0.5, max(steps[-1] if steps else len(curve.values) for curve in curves) + 0.5)
        if any(not curve.faint for curve in curves):
            axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=3, borderaxespad=0, handlelength=1.6)

    names = ", ".join(curve.name for curve in curves if not curve.faint)
    return draw(width, _HEIGHT, paint, identifier=identifier, label=f"{y_label} by {unit}: {names}.")


def _draw_curve(axes: Axes, curve: LearningCurve, epochs: Sequence[int], style: tuple[str, str]) -> None:
    heights = [math.nan if value is None or not math.isfinite(value) else value for value in curve.values]
    if curve.faint:
        axes.plot(epochs, heights, color=INK, alpha=0.25, linewidth=1)
        return
    colour, marker = style
    marked = marker if len(curve.values) <= _MOST_MARKED else ""
    axes.plot(
        epochs,
        heights,
        color=colour,
        marker=marked,
        markersize=4.5,
        markeredgecolor=PAPER,
        markeredgewidth=0.6,
        linewidth=1.6,
        label=shortened(curve.name, 24),
    )
