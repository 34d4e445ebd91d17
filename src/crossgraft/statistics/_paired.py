"""The two sequences that a rank correlation compares, checked once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.errors import DataError

ModelValues = Float[np.ndarray, " num_models"] | Sequence[float]
Paired = tuple[Float64[np.ndarray, " num_models"], Float64[np.ndarray, " num_models"]]


def paired_values(score: ModelValues, transfer_accuracy: ModelValues, *, at_least: int = 2) -> Paired:
    """Both sequences as float64.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.
        at_least: Number of models that the measure needs.

    Raises:
        DataError: Lengths differ, too few models, or a value is not finite.
    """
    first, second = np.asarray(score, dtype=np.float64), np.asarray(transfer_accuracy, dtype=np.float64)
    if first.shape != second.shape:
        raise DataError(f"score has {first.size} values and transfer_accuracy {second.size}; they must match.")
    if first.size < at_least:
        needed = "at least two models" if at_least == 2 else "a model"
        raise DataError(f"A rank correlation needs {needed}; there is {first.size}.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise DataError("score and transfer_accuracy must be finite; leave out models without a value.")
    return first, second
