"""How well a ranking can foresee fine-tuning at all: one training run of every network ranked against another."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from crossgraft.errors import DataError
from crossgraft.seeding import generator
from crossgraft.statistics import weighted_kendall

NUM_PAIRS = 200
"""Pairs of drawn runs; the error of the mean is then below 0.01 for ten networks."""


def noise_ceiling(
    results: Float64[np.ndarray, " num_models"],
    standard_deviations: Float64[np.ndarray, " num_models"],
    *,
    seed: int = 0,
) -> float:
    """Mean weighted Kendall between two runs of the same networks that differ in their seeds alone.

    Runs are drawn from normal distributions around the results. The results are means over seeds that are noisy themselves, and a
    little further apart than the true ones, so the ceiling is rather too high than too low. It is no bound for the agreement with
    a *mean* over many seeds.

    Args:
        results: Mean over seeds; NaN = not known, left out.
        standard_deviations: Between seeds, in the same unit.
        seed: Random seed of the draws.

    Returns:
        In [−1, 1]; NaN with fewer than two networks, or where nothing differs.

    Raises:
        DataError: A standard deviation is negative.
    """
    known = np.isfinite(results) & np.isfinite(standard_deviations)
    mean, deviation = results[known], standard_deviations[known]
    if (deviation < 0).any():
        raise DataError("A standard deviation between seeds is negative.")
    if len(mean) < 2 or np.ptp(mean) == 0:
        return float("nan")
    draws = generator(seed, "noise ceiling").normal(size=(NUM_PAIRS, 2, len(mean)))
    return float(np.mean([weighted_kendall(mean + deviation * a, mean + deviation * b) for a, b in draws]))
