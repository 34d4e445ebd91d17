"""Weighted Kendall rank correlation, the field's measure of a transferability score."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy import stats

from crossgraft.errors import DataError

ModelValues = Float[np.ndarray, " num_models"] | Sequence[float]


def weighted_kendall(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """Agreement of two rankings in which exchanges near the top weigh more.

    The mean of two additive-hyperbolic weighted taus, ranked once by score and once by truth: SciPy's
    ``weightedtau`` with its defaults, which reproduces the published tables of the thesis.

    Args:
        score: One value a model, larger = better.
        transfer_accuracy: What fine-tuning gave, in the same order.

    Returns:
        In [−1, 1]; NaN when one of the two is constant.

    Raises:
        DataError: Lengths differ, fewer than two models, or a value is not finite.

    Reference:
        Vigna, A weighted correlation index for rankings with ties, WWW 2015.

    >>> weighted_kendall([0.1, 0.2, 0.3], [0.5, 0.6, 0.9])
    1.0
    """
    first, second = np.asarray(score, dtype=np.float64), np.asarray(transfer_accuracy, dtype=np.float64)
    if first.shape != second.shape:
        raise DataError(f"score has {first.size} values and transfer_accuracy {second.size}; they must match.")
    if first.size < 2:
        raise DataError(f"A rank correlation needs at least two models; there is {first.size}.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise DataError("score and transfer_accuracy must be finite; leave out models without a value.")
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.asarray(stats.weightedtau(first, second))[0])
