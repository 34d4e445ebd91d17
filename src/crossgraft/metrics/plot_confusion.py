"""Which classes are taken for which."""

from __future__ import annotations

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from crossgraft.metrics.record import ConfusionRecord
from crossgraft.report.plots.style import FONT_PIXELS, INK, OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

MOST_CONFUSED_CLASSES = 20
_LONGEST_NAME = 18
_LONGEST_IF_NARROW = 10
_SMALL_SCREEN = 340
_LEAST_LEFT = 64  # pixels, for the word above the names of the rows
_STRONGEST = 0.6  # opacity of a full cell: text stays readable on it in light and dark


def confusion_figure(confusion: ConfusionRecord, *, identifier: str, is_narrow: bool = False) -> Markup:
    """Draw one cell for each true class (row) and predicted class (column) with its number of images.

    The stronger the colour of a cell, the larger its share of its row.

    Args:
        confusion: Confusion matrix of at most ``MOST_CONFUSED_CLASSES`` classes.
        identifier: Unique on the page.
        is_narrow: For the screen of a phone: shorter names, and cells as small as that needs and their numbers allow.
    """
    names = [shortened(name, _LONGEST_IF_NARROW if is_narrow else _LONGEST_NAME) for name in confusion.class_names]
    cell = 52 if len(names) <= 6 else 38 if len(names) <= 12 else 30
    longest = max(len(name) for name in names) * PIXELS_PER_CHARACTER
    left = max(longest + 14, _LEAST_LEFT)
    if is_narrow:
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
