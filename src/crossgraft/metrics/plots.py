"""Figures of predictions: which classes are taken for which, reliability, ROC."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from crossgraft.metrics.record import ConfusionRecord, ReliabilityBin, RocRecord
from crossgraft.report.plots.svg import (
    FONT_PIXELS,
    INK,
    MARKERS,
    OKABE_ITO,
    PAPER,
    PIXELS_PER_CHARACTER,
    SMALL_PIXELS,
    draw,
    framed_axes,
    shortened,
)

MOST_CONFUSED_CLASSES = 20
_LONGEST_NAME = 18
_LONGEST_IF_NARROW = 10
_SMALL_SCREEN = 340
_LEAST_LEFT = 64  # pixels, for the word above the names of the rows
_STRONGEST = 0.6  # opacity of a full cell: text stays readable on it in light and dark


def confusion_figure(confusion: ConfusionRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """Draw one cell for each true class (row) and predicted class (column) with its number of images.

    The stronger the colour of a cell, the larger its share of its row.

    Args:
        confusion: Confusion matrix of at most ``MOST_CONFUSED_CLASSES`` classes.
        identifier: Unique on the page.
        is_wide: Else for the screen of a phone: shorter names, and cells as small as that needs and their numbers allow.
    """
    names = [shortened(name, _LONGEST_NAME if is_wide else _LONGEST_IF_NARROW) for name in confusion.class_names]
    cell = 52 if len(names) <= 6 else 38 if len(names) <= 12 else 30
    longest = max(len(name) for name in names) * PIXELS_PER_CHARACTER
    left = max(longest + 14, _LEAST_LEFT)
    if not is_wide:
        digits = max(len(str(images)) for counts in confusion.counts for images in counts)
        room = (_SMALL_SCREEN - left - 6) / len(names)
        cell = min(cell, max(room, digits * PIXELS_PER_CHARACTER + 4))
    side = cell * len(names)
    flat = longest <= cell * 1.05  # otherwise the names of the columns stand upright
    top = 46 if flat else longest + 34
    width, height = max(left + side + 6, 250), top + side + 8

    def paint(figure: Figure) -> None:
        axes = figure.add_axes((left / width, 8 / height, side / width, side / height))
        axes.set_xlim(0, len(names))
        axes.set_ylim(len(names), 0)
        axes.set_axis_off()
        for row, counts in enumerate(confusion.counts):
            _draw_row(axes, row, counts, cell)
        for place, name in enumerate(names):
            axes.text(-6 / cell, place + 0.5, name, ha="right", va="center", size=FONT_PIXELS)
            turn = 0 if flat else 90
            axes.text(place + 0.5, -6 / cell, name, ha="center", va="bottom", rotation=turn, size=FONT_PIXELS)
        figure.text((left + side / 2) / width, 1 - 4 / height, "Predicted", ha="center", va="top", size=SMALL_PIXELS)
        figure.text(4 / width, 1 - 4 / height, "True ↓", va="top", size=SMALL_PIXELS)

    right = sum(counts[row] for row, counts in enumerate(confusion.counts))
    total = sum(map(sum, confusion.counts))
    label = f"Confusion matrix of {len(names)} classes: {right} of {total} images on the diagonal."
    return draw(width, height, paint, identifier=identifier, label=label, is_filled=True)


def _draw_row(axes: Axes, row: int, counts: list[int], cell: float) -> None:
    total = max(1, sum(counts))
    for column, images in enumerate(counts):
        colour = OKABE_ITO[0] if row == column else OKABE_ITO[1]
        place = (column + 1 / cell, row + 1 / cell)
        side = 1 - 2 / cell
        axes.add_patch(Rectangle(place, side, side, color=INK, alpha=0.05, linewidth=0))
        if images:
            shade = _STRONGEST * images / total
            axes.add_patch(Rectangle(place, side, side, color=colour, alpha=shade, linewidth=0))
        faint = 1.0 if images else 0.45
        axes.text(column + 0.5, row + 0.5, str(images), ha="center", va="center", alpha=faint, size=SMALL_PIXELS)


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


_SIDE, _LEGEND_LINE = 300, 19


def roc_figure(curves: Sequence[RocRecord], *, identifier: str) -> Markup:
    """Draw at most six curves, each with the point of its threshold if it has one.

    Args:
        curves: One per class or label, each against all others.
        identifier: Unique on the page.
    """
    shown = curves[: len(OKABE_ITO)]
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
