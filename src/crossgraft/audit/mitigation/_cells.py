"""The four cells of class and artefact, and draws that give each as many images."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64, Integer

from crossgraft.errors import DataError

Flags = Integer[np.ndarray, " num_images"]
RowNumbers = Int64[np.ndarray, " _"]
CELLS = tuple((label, artefact) for label in (0, 1) for artefact in (0, 1))
"""(label, artefact) of each cell."""


def cell_rows(labels: Flags, artefact: Flags) -> list[RowNumbers]:
    """Row numbers of each cell, in the order of ``CELLS``."""
    return [np.flatnonzero((labels == label) & (artefact == carried)) for label, carried in CELLS]


def cell_name(label: int, artefact: int) -> str:
    """A cell in words."""
    return f"{'positive' if label else 'negative'} {'with' if artefact else 'without'} the artefact"


def balanced_draw(cells: list[RowNumbers], rng: np.random.Generator) -> RowNumbers:
    """As many rows of each cell as the smallest has, without replacement, in ascending order.

    Args:
        cells: Row numbers of each cell, none empty.
        rng: Random numbers of this draw.
    """
    fewest = min(map(len, cells))
    return np.sort(np.concatenate([rng.choice(rows, fewest, replace=False) for rows in cells]))


def flags(values: Flags, name: str) -> Int64[np.ndarray, " num_images"]:
    """Values that are 0 or 1, as integers.

    Raises:
        DataError: One is neither.
    """
    known = np.asarray(values)
    if known.ndim != 1 or not np.isin(known, (0, 1)).all():
        raise DataError(f"{name} must be 0 or 1 for each image.")
    return known.astype(np.int64)
