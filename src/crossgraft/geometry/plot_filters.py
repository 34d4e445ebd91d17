"""Filters of the first convolution as small pictures."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from crossgraft.geometry.maps_record import FilterRow
from crossgraft.geometry.plot_cells import draw_cells
from crossgraft.report.plots.style import OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_WIDTH, _TOP, _GAP, _LABEL = 400, 28, 6, 16  # pixels
_IN_ROW = 8
_LEVELS = 5


def filters_figure(row: FilterRow, *, identifier: str) -> Markup:
    """Draw the first filters: orange above, blue below the mean; below each R² of its best Gabor fit, where there is one.

    Args:
        row: One network.
        identifier: Unique on the page.
    """
    in_row = min(_IN_ROW, len(row.patterns))
    side = (_WIDTH + _GAP) / _IN_ROW - _GAP
    label = _LABEL if row.r2 else 0
    height = _TOP + math.ceil(len(row.patterns) / in_row) * (side + _GAP + label)

    def paint(figure: Figure) -> None:
        title = shortened(f"{row.network}: {row.layer}", int(_WIDTH / PIXELS_PER_CHARACTER))
        figure.text(0, 1 - 4 / height, title, va="top")
        for place, pattern in enumerate(row.patterns):
            left = (place % in_row) * (side + _GAP)
            top = _TOP + (place // in_row) * (side + _GAP + label)
            axes = figure.add_axes((left / _WIDTH, 1 - (top + side) / height, side / _WIDTH, side / height))
            values = np.asarray(pattern)
            draw_cells(axes, values, OKABE_ITO[1], side_pixels=side, levels=_LEVELS)
            draw_cells(axes, -values, OKABE_ITO[0], side_pixels=side, levels=_LEVELS)
            if row.r2:
                r2 = row.r2[place]
                text = "flat" if r2 is None else f"{r2:.2f}"
                axes.set_xlabel(text, fontsize=SMALL_PIXELS - 1, labelpad=1)

    said = f"First {len(row.patterns)} of {row.num_filters} filters of {row.layer} in {row.network}."
    return draw(_WIDTH, height, paint, identifier=identifier, label=said)
