"""Matrices as cells, one path of thick strokes for each shade: small files, and colours that stay with the theme."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Float
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

LEVELS = 8


def draw_cells(
    axes: Axes, values: Float[np.ndarray, "rows columns"], colour: str, *, side_pixels: float, levels: int = LEVELS
) -> None:
    """Cells of one colour: nothing of it where a value is 0 or less, all of it at 1. Row 0 is at the top.

    Args:
        axes: Square or not; cells are square.
        values: In shares of full colour.
        colour: Colour of a 1.
        side_pixels: Longer side of what is drawn.
        levels: Shades.
    """
    rows, columns = values.shape
    shades = np.clip(np.ceil(values * levels), 0, levels).astype(int)
    for shade in range(1, levels + 1):
        strokes = [stroke for row in range(rows) for stroke in _strokes(shades[row] == shade, row)]
        if strokes:
            axes.add_patch(
                PathPatch(
                    Path.make_compound_path(*strokes),
                    fill=False,
                    edgecolor=colour,
                    alpha=shade / levels,
                    linewidth=side_pixels / max(rows, columns),
                    capstyle="butt",
                    antialiased=False,  # no seams between cells
                )
            )
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    axes.set_aspect("equal")
    for side in ("left", "bottom", "top", "right"):
        axes.spines[side].set(visible=True, alpha=0.35)


def _strokes(marks: Bool[np.ndarray, " columns"], row: int) -> Iterator[Path]:
    """One for each run of neighbours."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], marks, [False]]).astype(int)))
    for first, last in ends.reshape(-1, 2).tolist():
        yield Path([(first, row + 0.5), (last, row + 0.5)], [Path.MOVETO, Path.LINETO])
