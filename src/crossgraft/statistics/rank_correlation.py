"""Spearman's and Kendall's rank correlations, under the same rules as the weighted one."""

import numpy as np
from scipy import stats

from crossgraft.statistics._paired import ModelValues, paired_values


def spearman(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """Spearman's ρ: the Pearson correlation of the ranks; tied models share their mean rank.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.

    Returns:
        In [−1, 1]; NaN when one of the two is constant.

    Raises:
        DataError: Lengths differ, fewer than two models, or a value is not finite.

    Reference:
        Spearman, The proof and measurement of association between two things, 1904.

    >>> round(spearman([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]), 12)
    0.8
    """
    first, second = paired_values(score, transfer_accuracy)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.asarray(stats.spearmanr(first, second))[0])


def kendall(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """Kendall's τ_b: concordant minus discordant pairs; ties shrink the denominator of their own side.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.

    Returns:
        In [−1, 1]; NaN when one of the two is constant.

    Raises:
        DataError: Lengths differ, fewer than two models, or a value is not finite.

    Reference:
        Kendall, The treatment of ties in ranking problems, Biometrika 1945.

    >>> round(kendall([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]), 6)
    0.666667
    """
    first, second = paired_values(score, transfer_accuracy)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.asarray(stats.kendalltau(first, second, variant="b"))[0])
