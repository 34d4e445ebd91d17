"""Which of the models that cannot be told apart is handed over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from crossgraft.rank.belief import Belief

SEPARABLE = 0.95
"""Probability of being better from which on a model is told apart from another."""


@dataclass(frozen=True)
class Preference:
    """A choice among models.

    Attributes:
        model: The model that is taken.
        leader: The one with the highest expectation.
        alike: Models that cannot be told apart from the leader, the smallest (fastest) first; without the leader itself.
        by: What decided: ``accurate``, ``small`` or ``fast``; ``cost`` where val can tell nothing apart.
    """

    model: str
    leader: str
    alike: tuple[str, ...]
    by: str


def choose(
    belief: Belief,
    candidates: Bool[np.ndarray, " num_models"],
    prefer: str,
    weights: Mapping[str, float],
    *,
    blind: Mapping[str, float] | None = None,
) -> Preference:
    """The model to hand over.

    Args:
        belief: What is believed.
        candidates: Models that can be handed over, at least one.
        prefer: ``accurate`` takes the highest expectation; ``small`` and ``fast`` the lightest of those not told apart from it.
        weights: Parameters, or seconds.
        blind: Cost of each model where val can tell nothing apart: of the models that the prior cannot tell apart from its
            leader, the cheapest is taken unless ``prefer`` says otherwise. None: val can.
    """
    names = [model for model, is_candidate in zip(belief.models, candidates, strict=True) if is_candidate]
    expected = dict(zip(belief.models, map(float, belief.mean), strict=True))
    leader = max(names, key=lambda model: expected[model])
    weight = weights if blind is None or prefer != "accurate" else blind
    alike = [model for model in names if model != leader and belief.probability_better(leader, model) < SEPARABLE]
    alike.sort(key=lambda model: weight[model])
    by = "cost" if blind is not None and prefer == "accurate" else prefer
    lighter = [model for model in alike if weight[model] < weight[leader]]
    taken = leader if by == "accurate" or not lighter else lighter[0]
    return Preference(taken, leader, tuple(alike), by)
