"""What is decided from probabilities: one rule, for evaluating and for predicting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from crossgraft.errors import DataError
from crossgraft.types import Task

Probabilities = Float[np.ndarray, "num_samples num_classes"]
Thresholds = float | Sequence[float] | Float[np.ndarray, " num_labels"] | Float[np.ndarray, "num_samples num_labels"]
DEFAULT_THRESHOLD = 0.5


def decide(
    probabilities: Probabilities, *, task: Task, thresholds: Thresholds | None = None
) -> Int[np.ndarray, " num_samples"] | Int[np.ndarray, "num_samples num_classes"]:
    """Decisions from probabilities.

    Args:
        probabilities: (n, C) in [0, 1].
        task: ``multi-class`` takes the most probable class, the first of equal ones; ``binary`` the last class where its
            probability is at least the threshold; ``multi-label`` every label that reaches its own.
        thresholds: Thresholds in [0, 1]: one number, one per label, or (n, labels) where models differ from image to
            image, as those of folds do; by default 0.5. None for ``multi-class``.

    Returns:
        Class of each image (n,), or 0/1 for every label (n, C).

    Raises:
        DataError: Thresholds for several classes, a wrong number of them, or one that is no number.
    """
    if task == "multi-class":
        if thresholds is not None:
            raise DataError("One class of several is decided by the largest probability; leave the thresholds out.")
        return probabilities.argmax(axis=1)
    limits = np.atleast_1d(np.asarray(DEFAULT_THRESHOLD if thresholds is None else thresholds, dtype=np.float64))
    num_labels = 1 if task == "binary" else probabilities.shape[1]
    fits = len(limits) in (1, num_labels) if limits.ndim == 1 else limits.shape == (len(probabilities), num_labels)
    if not fits or not np.isfinite(limits).all():
        raise DataError(f"Give one threshold, or one for each of {num_labels} labels; got {limits.tolist()}.")
    if task == "binary":
        return (probabilities[:, -1] >= limits[..., 0]).astype(np.int64)
    return (probabilities >= limits).astype(np.int64)
