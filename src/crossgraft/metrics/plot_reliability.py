"""Reliability diagrams: stated probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossgraft.metrics.record import ReliabilityBin
from crossgraft.report.plots.style import INK, OKABE_ITO, PAPER
from crossgraft.report.plots.svg import draw

_WIDTH, _HEIGHT = 380, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 14, 56, 46
_LARGEST, _SMALLEST = 11.0, 3.0  # pixels across the marker of the fullest bin, and of the emptiest


def reliability_figure(
    raw: Sequence[ReliabilityBin], calibrated: Sequence[ReliabilityBin], *, identifier: str
) -> Markup:
    """Draw the share of right answers against the mean probability of each bin, before and after the temperature.

    Guo et al., On calibration of modern neural networks (2017), figure 1, with dots for bars: the area of a dot is the
    number of images in the bin.

    Args:
        raw: Probabilities before the temperature.
        calibrated: Probabilities after the temperature; may be empty.
        identifier: Unique on the page.
    """

    def paint(figure: Figure) -> None:
        size = ((_WIDTH - _LEFT - _RIGHT) / _WIDTH, (_HEIGHT - _BOTTOM - _TOP) / _HEIGHT)
        axes = figure.add_axes((_LEFT / _WIDTH, _BOTTOM / _HEIGHT, *size))
        figure.text(4 / _WIDTH, 1 - 4 / _HEIGHT, "Share of right answers", va="top")
        axes.set_xlabel("Stated probability")
        axes.set_xlim(0, 1.02)
        axes.set_ylim(-0.02, 1.02)
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
