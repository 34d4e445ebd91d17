"""Similarity of every layer of one network to every layer of another, as a grid."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from crossgraft.report.plots.style import FONT_PIXELS, INK, OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_LONGEST_NAME, _LONGEST_IF_NARROW = 22, 12
_WIDE, _SMALL_SCREEN = 410, 340
_STRONGEST = 0.75  # opacity of a similarity of 1: text stays readable on it in light and dark
_LARGEST_CELL, _WITH_NUMBER = 44, 24
_TITLE = 24
_FITTING, _SMALLER = (
    3,
    0.8,
)  # characters that fit the smallest cell with a number, and how much smaller more of them are


def layer_grid_figure(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float]],
    *,
    row_label: str,
    column_label: str,
    identifier: str,
    is_narrow: bool = False,
) -> Markup:
    """Draw a cell for each pair of layers, the stronger the more alike they are; the first layers stand at the bottom left.

    Args:
        title: What is compared.
        rows: Layers of the first network, first to last.
        columns: Layers of the second.
        values: By row, then column; at most 1, and below 0 drawn in another colour.
        row_label: Name of the first network.
        column_label: Name of the second.
        identifier: Unique on the page.
        is_narrow: For the screen of a phone: shorter names and smaller cells.
    """
    longest = _LONGEST_IF_NARROW if is_narrow else _LONGEST_NAME
    row_names, column_names = ([shortened(name, longest) for name in names] for names in (rows, columns))
    left = max(len(name) for name in (*row_names, "")) * PIXELS_PER_CHARACTER + 30
    below = max(len(name) for name in (*column_names, "")) * PIXELS_PER_CHARACTER + 30
    room = (_SMALL_SCREEN if is_narrow else _WIDE) - left - 8
    cell = min(_LARGEST_CELL, room / max(len(columns), 1))
    width, height = left + cell * len(columns) + 8, _TITLE + cell * len(rows) + below
    width = max(width, min(_SMALL_SCREEN, len(title) * PIXELS_PER_CHARACTER + 8))

    def paint(figure: Figure) -> None:
        size = (cell * len(columns) / width, cell * len(rows) / height)
        axes = figure.add_axes((left / width, below / height, *size))
        axes.set(xlim=(0, len(columns)), ylim=(0, len(rows)))
        axes.set_axis_off()
        for place, row in enumerate(values):
            _draw_row(axes, place, row, cell)
        for place, name in enumerate(row_names):
            axes.text(-6 / cell, place + 0.5, name, ha="right", va="center", size=SMALL_PIXELS)
        for place, name in enumerate(column_names):
            axes.text(place + 0.5, -6 / cell, name, ha="center", va="top", rotation=90, size=SMALL_PIXELS)
        most = int(width / PIXELS_PER_CHARACTER)
        figure.text(4 / width, 1 - 4 / height, shortened(title, most), va="top", size=FONT_PIXELS)
        across = shortened(column_label, int(cell * len(columns) / PIXELS_PER_CHARACTER) + 4)
        figure.text((left + cell * len(columns) / 2) / width, 2 / height, across, ha="center", size=SMALL_PIXELS)
        up = shortened(row_label, int(cell * len(rows) / PIXELS_PER_CHARACTER) + 4)
        middle = (below + cell * len(rows) / 2) / height
        figure.text(2 / width, middle, up, va="center", rotation=90, size=SMALL_PIXELS)

    label = f"{title}: similarity of {len(rows)} layers of {row_label} and {len(columns)} of {column_label}."
    return draw(width, height, paint, identifier=identifier, label=label, is_filled=True)


def _draw_row(axes: Axes, row: int, values: Sequence[float], cell: float) -> None:
    for column, value in enumerate(values):
        place, side = (column + 1 / cell, row + 1 / cell), 1 - 2 / cell
        axes.add_patch(Rectangle(place, side, side, color=INK, alpha=0.05, linewidth=0))
        shade = _STRONGEST * min(abs(value), 1)
        colour = OKABE_ITO[0] if value >= 0 else OKABE_ITO[1]
        axes.add_patch(Rectangle(place, side, side, color=colour, alpha=shade, linewidth=0))
        if cell >= _WITH_NUMBER:
            text = _in_a_cell(value)
            size = (SMALL_PIXELS - 1) * (_SMALLER if len(text) > _FITTING else 1)
            axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", size=size)


def _in_a_cell(value: float) -> str:
    """Two decimals without the zero before them.

    >>> _in_a_cell(0.954), _in_a_cell(-0.021), _in_a_cell(-0.001), _in_a_cell(1.0)
    ('.95', '−.02', '.00', '1.00')
    """
    rounded = round(value, 2) + 0.0  # no minus before a zero
    return f"{rounded:.2f}".replace("-", "\N{MINUS SIGN}").replace("0.", ".", 1)
