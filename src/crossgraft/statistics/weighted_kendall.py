"""Weighted Kendall rank correlation, the field's measure of a transferability score."""

import numpy as np
from scipy import stats

from crossgraft.statistics._paired import ModelValues, paired_values


def weighted_kendall(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """Agreement of two rankings in which exchanges near the top weigh more.

    The mean of two additive-hyperbolic weighted taus, ranked once by score and once by truth: SciPy's
    ``weightedtau`` with its defaults, which reproduces the published tables of the thesis.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.

    Returns:
        In [−1, 1]; NaN when one of the two is constant.

    Raises:
        DataError: Lengths differ, fewer than two models, or a value is not finite.

    Reference:
        Vigna, A weighted correlation index for rankings with ties, WWW 2015.

    >>> weighted_kendall([0.1, 0.2, 0.3], [0.5, 0.6, 0.9])
    1.0
    """
    first, second = paired_values(score, transfer_accuracy)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(np.asarray(stats.weightedtau(first, second))[0])


def weighted_kendall_itm(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """The weighted τ as eq. 1 of the ITM paper writes it: pairs weigh 1/(G_i + G_j) by the ranks of the truth alone.

    τ_w = Σ_{i<j} w_ij · sign[(G_i − G_j)(P_i − P_j)] / Σ_{i<j} w_ij,  w_ij = 1/(G_i + G_j), ranks from 1 = best. The
    paper's own tables hold SciPy's definition instead (one printed value is out of the reach of this one), so use
    ``weighted_kendall`` to compare with them. Tied models share their mean rank; a tied pair adds its weight to the
    denominator and nothing to the numerator.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.

    Returns:
        In [−1, 1]; NaN when one of the two is constant.

    Raises:
        DataError: Lengths differ, fewer than two models, or a value is not finite.

    Reference:
        Generalizable transferability estimation of foundation vision models via implicit learning (ITM), eq. 1.

    >>> weighted_kendall_itm([0.1, 0.2, 0.3], [0.5, 0.6, 0.9])
    1.0
    """
    first, second = paired_values(score, transfer_accuracy)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    G = stats.rankdata(-second)
    i, j = np.triu_indices(len(G), k=1)
    weight = 1 / (G[i] + G[j])
    agreement = np.sign((first[i] - first[j]) * np.sign(second[i] - second[j]))
    return float(np.sum(weight * agreement) / np.sum(weight))  # eq. 1
