"""Figures of predictions: reliability, ROC."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossgraft.metrics.record import ReliabilityBin, RocRecord
from crossgraft.report.plots.svg import INK, MARKERS, OKABE_ITO, PAPER, draw, framed_axes, shortened

_WIDTH, _HEIGHT = 380, 360
_MARGINS = (46, 14, 56, 46)
_LARGEST, _SMALLEST = 11.0, 3.0  # pixels across the marker of the fullest bin, and of the emptiest


def reliability_figure(raw: Sequence[ReliabilityBin], calibrated: Sequence[ReliabilityBin], *, identifier: str) -> Markup:
    """Draw the share of right answers against the mean probability of each bin, before and after the temperature.

    Guo et al., On calibration of modern neural networks (2017), figure 1, with dots for bars: the area of a dot is the
    number of images in the bin.

    Args:
        raw: Probabilities before the temperature.
        calibrated: Probabilities after the temperature; may be empty.
        identifier: Unique on the page.
    """

    def paint(figure: Figure) -> None:
        axes = framed_axes(figure, _WIDTH, _HEIGHT, _MARGINS, title="Share of right answers", x_label="Stated probability")
        axes.set(xlim=(0, 1.02), ylim=(-0.02, 1.02))
        axes.plot([0, 1], [0, 1], color=INK, alpha=0.5, linewidth=1, linestyle=(0, (4, 3)))
        _draw_bins(axes, raw, "before", OKABE_ITO[1], "s")
        _draw_bins(axes, calibrated, "after temperature", OKABE_ITO[0], "o")
        axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, borderaxespad=0, handlelength=1.6)

    label = "Share of right answers against stated probability, before and after the temperature."
    return draw(_WIDTH, _HEIGHT, paint, identifier=identifier, label=label)


def _draw_bins(axes: Axes, bins: Sequence[ReliabilityBin], name: str, colour: str, marker: str) -> None:
    filled = [(b.mean_probability, b.share_right, b.num_images) for b in bins if b.mean_probability is not None]
    points = [(x, y, number) for x, y, number in filled if y is not None]
    if not points:
        return
    most = max(number for *_, number in points)
    for place, (x, y, number) in enumerate(points):
        across = max(_SMALLEST, _LARGEST * (number / most) ** 0.5)
        look = {"color": colour, "markeredgecolor": PAPER, "markeredgewidth": 0.6, "linestyle": "none", "zorder": 3}
        axes.plot(x, y, marker=marker, markersize=across, **look)  # pyright: ignore[reportArgumentType]
        if place == 0:
            axes.plot([], [], marker=marker, markersize=7, label=name, **look)  # pyright: ignore[reportArgumentType]


CURVES_TOGETHER = len(OKABE_ITO)
"""Curves that one drawing tells apart."""
MOST_CURVES = 20 * CURVES_TOGETHER
"""Curves that a page draws."""
_SIDE, _LEGEND_LINE = 300, 19


def roc_figure(curves: Sequence[RocRecord], *, identifier: str) -> Markup:
    """Draw at most ``CURVES_TOGETHER`` curves, each with the point of its threshold if it has one.

    Args:
        curves: One per class or label, each against all others.
        identifier: Unique on the page.
    """
    shown = curves[:CURVES_TOGETHER]
    top = 30 + _LEGEND_LINE * ((len(shown) + 1) // 2)
    left, right, _, below = _MARGINS
    height = top + _SIDE + below

    def paint(figure: Figure) -> None:
        margins, across = (left, right, top, below), "False positive rate (1 − specificity)"
        axes = framed_axes(figure, _WIDTH, height, margins, title="Sensitivity (true positive rate)", x_label=across)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
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
