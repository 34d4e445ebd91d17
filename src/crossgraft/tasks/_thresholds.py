"""The probabilities from which on a class or label is decided for."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.errors import DataError

Probabilities = Float[np.ndarray, "num_samples num_classes"]
Thresholds = float | Sequence[float] | Float[np.ndarray, " num_labels"] | Float[np.ndarray, "num_samples num_labels"]
DEFAULT_THRESHOLD = 0.5


def checked_thresholds(
    thresholds: Thresholds | None, num_images: int, num_labels: int
) -> Float64[np.ndarray, " _"] | Float64[np.ndarray, "num_samples num_labels"]:
    """One threshold for all, one per label, or one per image and label.

    Raises:
        DataError: Another number of them, or one that is no number.
    """
    limits = np.atleast_1d(np.asarray(DEFAULT_THRESHOLD if thresholds is None else thresholds, dtype=np.float64))
    fits = len(limits) in (1, num_labels) if limits.ndim == 1 else limits.shape == (num_images, num_labels)
    if not fits or not np.isfinite(limits).all():
        raise DataError(f"Give one threshold, or one for each of {num_labels} labels; got {limits.tolist()}.")
    return limits
