"""Matrices as squares, one path for each shade: small files, and colours that stay with the theme."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

LEVELS = 8


def draw_cells(axes: Axes, values: Float[np.ndarray, "rows columns"], colour: str, *, levels: int = LEVELS) -> None:
    """Squares of one colour: nothing of it where a value is 0 or less, all of it at 1. Row 0 is at the top."""
    rows, columns = values.shape
    shades = np.clip(np.ceil(values * levels), 0, levels).astype(int)
    for shade in range(1, levels + 1):
        squares = [_square(column, row) for row, column in np.argwhere(shades == shade).tolist()]
        if squares:
            shape = Path.make_compound_path(*squares)
            axes.add_patch(PathPatch(shape, facecolor=colour, alpha=shade / levels, linewidth=0))
    axes.set(xlim=(0, columns), ylim=(rows, 0), xticks=[], yticks=[])
    axes.set_aspect("equal")
    for side in ("left", "bottom", "top", "right"):
        axes.spines[side].set(visible=True, alpha=0.35)


def _square(column: float, row: float) -> Path:
    corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1), (column, row)]
    return Path(corners, [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY])
