"""The decision threshold that val picks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from crossgraft.tasks import BinaryTask
from crossgraft.tune.measuring.thresholds import fit_thresholds, threshold_values


def best_threshold(probabilities: Float[np.ndarray, " num_val"], labels: Int[np.ndarray, " num_val"]) -> float:
    """The probability from which on sensitivity + specificity is largest (Youden), halfway to the next lower one.

    0.5 where no threshold is better than chance.

    >>> best_threshold(np.array([0.1, 0.3, 0.7, 0.9]), np.array([0, 0, 1, 1]))
    0.5
    """
    task, names = BinaryTask(), ("negative", "positive")
    both = np.c_[1 - probabilities, probabilities]
    return float(threshold_values(fit_thresholds(both, labels, task=task, class_names=names, rule="youden"))[0])
