"""How sure the weighted Kendall of one ranking of models is."""

from __future__ import annotations

import math

import numpy as np

from crossgraft.statistics._paired import ModelValues, paired_values
from crossgraft.statistics.exact_tests import MeanInterval
from crossgraft.statistics.jackknife import jackknife_interval
from crossgraft.statistics.rank_correlation import weighted_kendall

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
    found = jackknife_interval(float(z[0]), z[1:].tolist())
    if found.standard_error <= 1e-9:  # τ of another order of additions
        return MeanInterval(tau, None, None, "it is the same without any of the models")
    low, high = (math.tanh(end) / (1 - 1 / number) for end in (found.low, found.high))
    return MeanInterval(tau, max(-1.0, low), min(1.0, high))
