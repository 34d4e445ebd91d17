"""Attention to patches: one row per image, one column per network."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from crossgraft.geometry.maps_record import AttentionRecord
from crossgraft.geometry.plot_cells import draw_cells
from crossgraft.report.plots.style import OKABE_ITO, PIXELS_PER_CHARACTER, SMALL_PIXELS, shortened
from crossgraft.report.plots.svg import draw

_WIDE, _NARROW = 828, 340  # pixels
_LARGEST, _GAP, _TOP, _BELOW, _LEFT = 150, 12, 26, 20, 70
MOST_DRAWN_NETWORKS = 6


def attention_figure(record: AttentionRecord, *, identifier: str, is_wide: bool = True) -> Markup:
    """Draw the attention of each network to each image; below a map its overlap with the reference.

    Args:
        record: Attention of the networks, of which the first ``MOST_DRAWN_NETWORKS`` are drawn.
        identifier: Unique on the page.
        is_wide: Whether there is room for large maps.
    """
    networks = record.networks[:MOST_DRAWN_NETWORKS]
    room = (_WIDE if is_wide else _NARROW) - _LEFT
    side = min(_LARGEST, room / len(networks) - _GAP)
    width = _LEFT + len(networks) * (side + _GAP)
    height = _TOP + len(record.drawn) * (side + _BELOW)

    def paint(figure: Figure) -> None:
        for column, network in enumerate(networks):
            left = _LEFT + column * (side + _GAP)
            name = shortened(network.network, max(3, int(side / PIXELS_PER_CHARACTER)))
            figure.text(left / width, 1 - 6 / height, name, va="top")
            for row, matrix in enumerate(network.attention):
                top = _TOP + row * (side + _BELOW)
                axes = figure.add_axes(
                    (left / width, 1 - (top + side) / height, side / width, side / height), anchor="NW"
                )
                draw_cells(axes, np.asarray(matrix), OKABE_ITO[1], side_pixels=side)
                text = f"overlap {network.drawn_overlaps[row]:.2f}" if network.drawn_overlaps else "reference"
                axes.set_xlabel(text, fontsize=SMALL_PIXELS, labelpad=2, loc="left")
        for row, number in enumerate(record.drawn):
            middle = _TOP + row * (side + _BELOW) + side / 2
            figure.text(0, 1 - middle / height, f"Image {number + 1}", va="center", size=SMALL_PIXELS)

    names = ", ".join(network.network for network in networks)
    return draw(width, height, paint, identifier=identifier, label=f"Attention to patches of images, of {names}.")
