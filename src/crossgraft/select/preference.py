"""What val tells apart of the models that were trained, and which of those it does not is handed over."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from crossgraft.seeding import generator
from crossgraft.select.rule import Selected, Trial

SEPARABLE = 0.95
"""Chance of being better from which on a model is told apart from another."""
NUM_DRAWS = 4000


@dataclass(frozen=True)
class Preference:
    """A choice among the models that were trained.

    Attributes:
        model: The model that is taken.
        leader: The best on val.
        alike: Trained models that val does not tell apart from the leader, the smallest (fastest) first; without the leader.
    """

    model: str
    leader: str
    alike: tuple[str, ...]


def choose(selected: Selected, prefer: str, weights: Mapping[str, float], shared_error: float) -> Preference:
    """The model to hand over.

    Args:
        selected: What was trained.
        prefer: ``accurate`` takes the best on val; ``small`` and ``fast`` the lightest of those not told apart from it.
        weights: Parameters, or seconds.
        shared_error: Share in [0, 1) of the variance of errors on val that is the same for all models.
    """
    leader, *others = sorted(selected.trained, key=lambda trial: trial.model != selected.model)
    chances = {trial.model: chance_better(trial, leader, shared_error) for trial in others}
    alike = [model for model, chance in chances.items() if chance is not None and chance > 1 - SEPARABLE]
    alike.sort(key=lambda model: (weights[model], model))
    lighter = [model for model in alike if weights[model] < weights[leader.model]]
    taken = leader.model if prefer == "accurate" or not lighter else lighter[0]
    return Preference(taken, leader.model, tuple(alike))


def chance_better(first: Trial, second: Trial, shared_error: float) -> float | None:
    """Chance that the first of two trained models is the better one, with normal errors; None where errors are not known.

    ½ where both show the same.
    """
    if first.standard_error is None or second.standard_error is None:
        return None
    difference = (first.value or 0.0) - (second.value or 0.0)
    error = math.sqrt((first.standard_error**2 + second.standard_error**2) * (1 - shared_error))
    return float(special.ndtr(difference / error)) if error > 0 else 0.5 * (1 + float(np.sign(difference)))


def expected_regret(
    selected: Selected, model: str, shared_error: float, *, limit: float | None, seed: int
) -> float | None:
    """How much worse a model is than the best of those that were trained, on average over 4 000 draws of their true values.

    With normal errors on val, cut at the limit of the metric; never more than what is left to gain on val. None where only one
    model was trained, or errors are not known.
    """
    trained = selected.trained
    errors = [trial.standard_error for trial in trained]
    if len(trained) < 2 or any(error is None for error in errors):
        return None
    values = np.array([trial.value or 0.0 for trial in trained])
    own = np.array([error or 0.0 for error in errors]) * math.sqrt(1 - shared_error)
    draws = values + own * generator(seed, "regret").normal(size=(NUM_DRAWS, len(values)))
    draws = draws if limit is None else np.minimum(draws, limit)
    place = next(i for i, trial in enumerate(trained) if trial.model == model)
    regret = float((draws.max(axis=1) - draws[:, place]).mean())
    return regret if limit is None else min(regret, max(limit - float(values[place]), 0.0))
