"""The energy of images, of their logits or of their features."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from crossgraft.errors import UsageError

_BLOCK_ROWS = 128


class Energy(NamedTuple):
    """log Σ_k exp(v_k), averaged.

    Attributes:
        lowest: Mean over the images where it is lowest.
        num_lowest: Number of these.
        of_all: Mean over all images.
    """

    lowest: float
    num_lowest: int
    of_all: float


def energy_of(values: np.ndarray, *, fraction: float) -> Energy:
    """Energy of the rows of ``values`` (Gholami et al. 2023, eqs. 4–6), the lowest ``fraction`` of them, at least one.

    Raises:
        UsageError: ``fraction`` is not in (0, 1].
    """
    if not 0 < fraction <= 1:
        raise UsageError(f"`fraction` must lie in (0, 1], got {fraction}.")
    per_image = _log_sum_exp(values)
    num_lowest = max(1, int(fraction * len(per_image)))
    lowest = np.partition(per_image, num_lowest - 1)[:num_lowest]
    return Energy(float(lowest.mean()), num_lowest, float(per_image.mean()))


def _log_sum_exp(values: np.ndarray) -> np.ndarray:
    """Log Σ_k exp(v_k) of every row, in float64 and in blocks that stay in the processor's cache."""
    log_sums = np.empty(len(values))
    for start in range(0, len(values), _BLOCK_ROWS):
        block = values[start : start + _BLOCK_ROWS].astype(np.float64)
        largest = block.max(axis=1)
        block -= largest[:, None]
        np.exp(block, out=block)
        log_sums[start : start + _BLOCK_ROWS] = np.log(block.sum(axis=1)) + largest
    return log_sums
