"""Rank correlations of scores with results of fine-tuning; a weighted one is the field's measure of a score."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy
from jaxtyping import Float64

from crossgraft.statistics.exact_tests import MeanInterval, ModelValues, paired_values
from crossgraft.statistics.jackknife import jackknife_interval

_Values = Float64[np.ndarray, " num_models"]


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
    return _correlation(score, transfer_accuracy, lambda x, y: np.asarray(scipy.stats.spearmanr(x, y))[0])


def kendall(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """Kendall's τ_b: concordant minus discordant pairs; ties shrink the denominator of their own side.

    Arguments, range and errors are those of ``spearman``.

    Reference:
        Kendall, The treatment of ties in ranking problems, Biometrika 1945.

    >>> round(kendall([1.0, 2.0, 3.0, 4.0], [1.0, 3.0, 2.0, 4.0]), 6)
    0.666667
    """
    return _correlation(score, transfer_accuracy, lambda x, y: np.asarray(scipy.stats.kendalltau(x, y, variant="b"))[0])


def weighted_kendall(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """Agreement of two rankings in which exchanges near the top weigh more.

    The mean of two additive-hyperbolic weighted taus, ranked once by score and once by truth: SciPy's
    ``weightedtau`` with its defaults, which reproduces the published tables of the thesis. Arguments, range and errors are
    those of ``spearman``.

    Reference:
        Vigna, A weighted correlation index for rankings with ties, WWW 2015.

    >>> weighted_kendall([0.1, 0.2, 0.3], [0.5, 0.6, 0.9])
    1.0
    """
    return _correlation(score, transfer_accuracy, lambda x, y: np.asarray(scipy.stats.weightedtau(x, y))[0])


def weighted_kendall_itm(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """The weighted τ as eq. 1 of the ITM paper writes it: pairs weigh 1/(G_i + G_j) by the ranks of the truth alone.

    τ_w = Σ_{i<j} w_ij · sign[(G_i − G_j)(P_i − P_j)] / Σ_{i<j} w_ij,  w_ij = 1/(G_i + G_j), ranks from 1 = best. The
    paper's own tables hold SciPy's definition instead (one printed value is out of the reach of this one), so use
    ``weighted_kendall`` to compare with them. Tied models share their mean rank; a tied pair adds its weight to the
    denominator and nothing to the numerator. Arguments, range and errors are those of ``spearman``.

    Reference:
        Generalizable transferability estimation of foundation vision models via implicit learning (ITM), eq. 1.

    >>> weighted_kendall_itm([0.1, 0.2, 0.3], [0.5, 0.6, 0.9])
    1.0
    """
    return _correlation(score, transfer_accuracy, _weighted_by_truth)


def _weighted_by_truth(score: _Values, truth: _Values) -> float:
    G = scipy.stats.rankdata(-truth)
    i, j = np.triu_indices(len(G), k=1)
    weight = 1 / (G[i] + G[j])
    agreement = np.sign((score[i] - score[j]) * np.sign(truth[i] - truth[j]))
    return float(np.sum(weight * agreement) / np.sum(weight))  # eq. 1


def _correlation(score: ModelValues, transfer_accuracy: ModelValues, measure: Callable[[_Values, _Values], float]) -> float:
    first, second = paired_values(score, transfer_accuracy)
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(measure(first, second))


FEWEST_MODELS = 4


def weighted_kendall_interval(score: ModelValues, transfer_accuracy: ModelValues) -> MeanInterval:
    """Weighted Kendall with an interval of 95 % over models, which are left out one at a time.

    The jackknife is of z = artanh(τ (1 − 1/M)), whose spread depends less on τ, with Student's t and M − 1 degrees of freedom.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.

    Returns:
        Without an interval, and with the reason, of fewer than four models, or where leaving one out changes nothing or leaves
        no order.

    Raises:
        DataError: Lengths differ, fewer than two models, or a value is not finite.
    """
    x, y = paired_values(score, transfer_accuracy)
    number, tau = len(x), weighted_kendall(x, y)
    if number < FEWEST_MODELS:
        return MeanInterval(tau, None, None, f"{number} models, where {FEWEST_MODELS} are needed")
    values = np.array([tau, *(weighted_kendall(np.delete(x, i), np.delete(y, i)) for i in range(number))])
    if not np.isfinite(values).all():
        return MeanInterval(tau, None, None, "without one of the models the correlation is not defined")
    z = np.arctanh(values * (1 - 1 / number))
    jackknife = jackknife_interval(float(z[0]), z[1:].tolist())
    if jackknife.standard_error <= 1e-9:  # τ of another order of additions
        return MeanInterval(tau, None, None, "it is the same without any of the models")
    low, high = (math.tanh(end) / (1 - 1 / number) for end in (jackknife.low, jackknife.high))
    return MeanInterval(tau, max(-1.0, low), min(1.0, high))
