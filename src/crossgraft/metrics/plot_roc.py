"""Sensitivity against the share of false alarms, for every threshold."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.figure import Figure

from crossgraft.metrics.record import RocRecord
from crossgraft.report.plots.style import INK, MARKERS, OKABE_ITO, PAPER, shortened
from crossgraft.report.plots.svg import draw

_WIDTH, _SIDE = 380, 300
_LEFT, _RIGHT, _BOTTOM = 46, 14, 46
_LEGEND_LINE = 19


def roc_figure(curves: Sequence[RocRecord], *, identifier: str) -> Markup:
    """Draw at most six curves, each with the point of its threshold if it has one.

    Args:
        curves: One per class or label, each against all others.
        identifier: Unique on the page.
    """
    shown = curves[: len(OKABE_ITO)]
    top = 30 + _LEGEND_LINE * ((len(shown) + 1) // 2)
    height = top + _SIDE + _BOTTOM

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((_LEFT / _WIDTH, _BOTTOM / height, (_WIDTH - _LEFT - _RIGHT) / _WIDTH, _SIDE / height))
        figure.text(4 / _WIDTH, 1 - 4 / height, "Sensitivity (true positive rate)", va="top")
        axes.set_xlabel("False positive rate (1 − specificity)")
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.02, 1.02)
        axes.plot([0, 1], [0, 1], color=INK, alpha=0.5, linewidth=1, linestyle=(0, (4, 3)))
        for index, curve in enumerate(shown):
            colour, marker = OKABE_ITO[index], MARKERS[index]
            rates = (curve.false_positive_rates, curve.true_positive_rates)
            axes.plot(*rates, color=colour, linewidth=1.7, label=shortened(curve.class_name, 20))
            if curve.at_threshold is not None:
                place = ([curve.at_threshold[0]], [curve.at_threshold[1]])
                axes.plot(*place, marker, color=colour, markeredgecolor=PAPER, markersize=8, zorder=4)
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, borderaxespad=0, handlelength=1.6)

    names = ", ".join(curve.class_name for curve in shown)
    return draw(_WIDTH, height, paint, identifier=identifier, label=f"ROC curves: {names}.")
