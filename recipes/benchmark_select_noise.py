"""What the error of published results alone costs: the regret of whoever knows which network is truly best."""

from __future__ import annotations

import numpy as np
from benchmark import Replay, own_share
from ground_truth_table import trained_tables

from crossgraft.rank.kinds import without_outliers
from crossgraft.seeding import generator

NUM_DRAWS = 4000


def result_errors(replay: Replay, target: int, models: np.ndarray) -> np.ndarray | None:
    """Standard errors of the results: of few seeds and, where they are known, of few test images; None where nothing is known.

    Of the error of few test images only the part counts that networks do not have in common.
    """
    table = replay.table
    if table.name in trained_tables():
        trained = trained_tables()[table.name]
        sampling = own_share(replay, target) * trained.test_errors[target, models]
        return np.sqrt(trained.seed_errors[target, models] ** 2 + sampling**2)
    if table.standard_deviations is None:
        return None
    return np.nan_to_num(table.standard_deviations[target, models]) / np.sqrt(table.num_seeds)


def regret_of_the_truly_best(results: np.ndarray, errors: np.ndarray, *, seed: int = 0) -> float:
    """Expected regret, in the results as they are, of the network whose expected result is the best.

    With y = μ + ε, ε ~ N(0, errors²) and μ ~ N(m, V), V by moments, the expected results given y are normal,

        μ | y ~ N(m + k (y − m), k · errors²),    k = V/(V + errors²),

    and the regret is max y − y of the network with the largest μ, in the mean over draws of μ. Where the errors explain all
    of the spread, V = 0: any network may be the one.
    """
    kept = without_outliers(results)
    variance = max(float(kept.var(ddof=1)) - float(np.mean(errors**2)), 0.0)
    share = variance / np.maximum(variance + errors**2, 1e-12)
    mean = kept.mean() + share * (kept - kept.mean())
    drawn = generator(seed, "expected results").standard_normal((NUM_DRAWS, len(results)))
    deviation = np.maximum(np.sqrt(share) * errors, 1e-9 * np.abs(results).max())
    best = np.argmax(mean + deviation * drawn, axis=1)
    return float(results.max() - results[best].mean())
