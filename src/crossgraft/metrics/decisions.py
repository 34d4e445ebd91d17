"""What is decided from probabilities: one rule, for evaluating and for predicting."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int

from crossgraft.tasks import AnyTask, Probabilities, Thresholds, task_named


def decide(
    probabilities: Probabilities, *, task: AnyTask, thresholds: Thresholds | None = None
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
        UnknownNameError: There is no such task.
    """
    return task_named(task).decide(probabilities, thresholds)
