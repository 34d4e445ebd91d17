"""Whether the overlap of an artefact with what models look at orders them as their reliance on it does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from crossgraft.errors import DataError
from crossgraft.statistics import permutation_p_value, spearman

LEAST_MODELS = 5
"""A rank correlation of fewer models says nothing."""


class RiskRank(NamedTuple):
    """Whether the overlap orders models as their reliance does.

    Attributes:
        spearman: Rank correlation over models; None where it is not defined.
        p_value: One-sided, of agreement at least as good by chance; None likewise.
        num_models: Models compared.
        reason: Reason why there is none.
    """

    spearman: float | None
    p_value: float | None
    num_models: int
    reason: str | None


def risk_rank(
    overlaps: Sequence[float] | Float[np.ndarray, " num_models"],
    reliance: Sequence[float] | Float[np.ndarray, " num_models"],
    *,
    num_permutations: int = 4999,
    seed: int = 0,
) -> RiskRank:
    """Spearman's ρ between the overlaps of models with one artefact and how far they rely on it, with a permutation test.

    The p-value is the share of orders of the models with a ρ at least as large: all of them up to seven models, beyond it
    (1 + hits) / (1 + draws).

    Args:
        overlaps: One overlap per model, of the same artefact and with priorities of the same objective.
        reliance: Shortcut reliance index of each model.
        num_permutations: Draws beyond seven models.
        seed: Random seed of the draws.

    Returns:
        Below five models, or where all values of a side are equal, no ρ, and the reason.

    Raises:
        DataError: Lengths differ, or a value is not finite.

    Source: Spearman, The proof and measurement of association between two things, 1904.
    """
    first, second = np.asarray(overlaps, dtype=np.float64), np.asarray(reliance, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise DataError(f"Each model has an overlap and a reliance; got {first.size} and {second.size}.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise DataError("Overlaps and reliance must be finite. Leave out models for which one is not defined.")
    number = len(first)
    if number < LEAST_MODELS:
        return RiskRank(None, None, number, f"Ranks of {number} models say nothing; {LEAST_MODELS} are needed.")
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return RiskRank(None, None, number, "All models have the same value, so that they have no order.")
    ranks = [rankdata(each) for each in (first, second)]
    # Σ of products of ranks orders the permutations as ρ does, and is exact
    p_value = permutation_p_value(
        lambda x, y: float(np.dot(x, y)), ranks[0], ranks[1], num_permutations=num_permutations, seed=seed
    )
    return RiskRank(spearman(first, second), p_value, number, None)
