"""The area that the released code of the thesis reports, for comparison with published curves; the metric is the pairwise AUC."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int
from sklearn.metrics import roc_auc_score

from crossgraft.errors import DataError, UsageError

KERAS_THRESHOLDS = 200
"""What ``keras.metrics.AUC`` has unless it is told otherwise."""


def micro_auc(
    probabilities: Float[np.ndarray, " num_images"],
    labels: Int[np.ndarray, " num_images"],
    *,
    num_thresholds: int | None = None,
) -> float:
    """AUC of both columns of a softmax together: each image counts twice, with p for its class 1 and with 1 − p for its class 0.

    It is not the share of pairs in the right order. What gives every image the same p has 0.5 there, and here more, the rarer a
    class is; where every pair is in the wrong order but nothing crosses 0.5, it is far from 0.

    Args:
        probabilities: (n,) of class 1, in [0, 1].
        labels: (n,) 0 or 1.
        num_thresholds: Number of thresholds of ``keras.metrics.AUC``, from just below 0 to just above 1 in equal steps;
            probabilities between the same two are ties. None: exact.

    Raises:
        DataError: Lengths differ, a probability is not in [0, 1], a label is not 0 or 1, or there are no images.
        UsageError: There are fewer than two thresholds.

    Cost: a sort of 2n numbers.

    Source: ``keras.metrics.AUC`` on flattened one-hot labels, as in the released code of Juodelyte's thesis.
    """
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if p.shape != y.shape or p.ndim != 1 or not len(p):
        raise DataError(f"Each image needs a probability and a label; got {p.shape} and {y.shape}.")
    if not ((p >= 0) & (p <= 1)).all() or not np.isin(y, (0, 1)).all():
        raise DataError("Probabilities must lie in [0, 1], and labels must be 0 or 1.")
    scores = np.r_[1 - p, p]
    if num_thresholds is not None:
        if num_thresholds < 2:
            raise UsageError(f"num_thresholds must be at least 2, got {num_thresholds}.")
        # how many thresholds a probability exceeds: the first one always, the last one never
        scores = np.maximum(np.ceil(scores * (num_thresholds - 1)), 1)
    return float(roc_auc_score(np.r_[1 - y, y], scores))
