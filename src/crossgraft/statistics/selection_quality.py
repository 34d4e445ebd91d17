"""The results of fine-tuning only the first choices of a score."""

from __future__ import annotations

from math import comb

import numpy as np
import scipy
from jaxtyping import Float64

from crossgraft.errors import DataError
from crossgraft.statistics.exact_tests import ModelValues, paired_values

_LOG_ROOT_2_PI = np.log(np.sqrt(2 * np.pi))


def expected_maximum(num_draws: int) -> float:
    """E[max] of independent standard normal draws: ∫ x k φ(x) Φ(x)^(k−1) dx; 0 for one draw, 0.564 for two, 1.42 for eight.

    Args:
        num_draws: Number k of draws, at least 1.

    >>> round(expected_maximum(2), 4)
    0.5642
    """
    if num_draws == 1:
        return 0.0

    def integrand(x: float) -> float:  # log φ(x) as scipy.stats.norm has it, in a sixtieth of the time
        return float(x * num_draws * np.exp(-(x**2) / 2 - _LOG_ROOT_2_PI + (num_draws - 1) * scipy.special.log_ndtr(x)))

    return float(scipy.integrate.quad(integrand, -10, 40, limit=200, points=[0.0, 2.0, 5.0])[0])


def top_1_regret(score: ModelValues, transfer_accuracy: ModelValues) -> float:
    """How much worse the first choice of a score is than the best model, in the unit of the results.

    Regret = max_m g_m − g_(argmax score). When several models share the highest score, one of them is taken at random
    and the regret is the expected one.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order.

    Returns:
        ≥ 0; 0 when the first choice is (one of) the best.

    Raises:
        DataError: Lengths differ, no model, or a value is not finite.

    >>> round(top_1_regret([3.0, 2.0, 1.0], [0.8, 0.9, 0.7]), 12)
    0.1
    """
    first, second = paired_values(score, transfer_accuracy, at_least=1)
    return float(second.max() - _expected_best(first, second, k=1))


def relative_top_k_accuracy(score: ModelValues, transfer_accuracy: ModelValues, *, k: int = 1) -> float:
    """Rel@k: the best result among the k first choices of a score as a share of the best result of all.

    When a tie straddles place k, the open places are filled at random and the best result is the expected one.

    Args:
        score: One value per model, larger = better.
        transfer_accuracy: Results of fine-tuning, in the same order; positive.
        k: Number of models that are fine-tuned; with more than there are, all are.

    Returns:
        In (0, 1]; 1 when the best model is among the first k.

    Raises:
        DataError: Lengths differ, no model, a value is not finite, a result is not positive, or k < 1.

    Reference:
        Li et al., Ranking neural checkpoints, CVPR 2021, sec. 4.2 (Rel@k).

    >>> round(relative_top_k_accuracy([3.0, 2.0, 1.0], [0.8, 0.9, 0.7], k=1), 6)
    0.888889
    >>> relative_top_k_accuracy([3.0, 2.0, 1.0], [0.8, 0.9, 0.7], k=2)
    1.0
    """
    first, second = paired_values(score, transfer_accuracy, at_least=1)
    if k < 1:
        raise DataError(f"k is {k}; at least one model has to be chosen.")
    if second.min() <= 0:
        raise DataError(f"A share of the best result needs positive results; one is {second.min():g}.")
    return float(_expected_best(first, second, k=min(k, len(first))) / second.max())


def _expected_best(score: Float64[np.ndarray, " num_models"], result: Float64[np.ndarray, " num_models"], *, k: int) -> float:
    """Expected best result among the k highest scores, ties at place k broken at random."""
    cut = np.sort(score)[::-1][k - 1]
    certain = result[score > cut]
    tied = np.sort(result[score == cut])[::-1]
    num_free = k - len(certain)
    # The best of `places` random ones of the tied is their j-th best with probability C(t−j−1, places−1) / C(t, places).
    chances = [comb(len(tied) - j - 1, num_free - 1) / comb(len(tied), num_free) for j in range(len(tied))]
    floor = certain.max() if len(certain) else -np.inf
    return float(np.dot(chances, np.maximum(tied, floor)))
