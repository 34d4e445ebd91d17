"""The decision threshold that val picks."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import roc_curve


def best_threshold(probabilities: Float[np.ndarray, " num_val"], labels: Int[np.ndarray, " num_val"]) -> float:
    """The probability from which on sensitivity + specificity is largest (Youden), halfway to the next lower one.

    >>> best_threshold(np.array([0.1, 0.3, 0.7, 0.9]), np.array([0, 0, 1, 1]))
    0.5
    """
    rates = np.column_stack(roc_curve(labels, probabilities))
    cut = float(rates[int(np.argmax(rates[:, 1] - rates[:, 0])), 2])
    if not np.isfinite(cut):  # nobody is decided positive
        return float(np.nextafter(probabilities.max(), 2.0))
    below = probabilities[probabilities < cut]
    return (cut + float(below.max())) / 2 if len(below) else cut
