"""The rule of ``select``: whole trainings in the expected order while the budget lasts; the best on val is handed over.

1. Models are taken by what is expected of them (``rank.expected_order``), of equal ones that with fewer parameters, then by name.
2. As many are trained at a time as there are places. One that no longer fits into what is left of the budget is passed over.
3. A value on val at its upper limit ends the search: nothing can be better there. One more training is made, of the model with
   the fewest parameters, if it has fewer and fits.
4. The best on val is handed over, of equal ones that with fewer parameters, then by name.

What is booked are the costs of the plan, never the clock, so that a selection that was stopped goes on with the same decisions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from crossgraft.errors import DataError, UsageError
from crossgraft.seeding import generator
from crossgraft.words.formatting import duration

COST_NOISE = 0.25
"""Costs that lie above the least of a group by at most this share are taken as equal; fixed, not fitted."""
_ROUNDING = 1e-9
Ending = Literal["budget", "all trained", "limit of val", "val tells nothing"]


class Candidate(NamedTuple):
    """One model before anything was trained.

    Attributes:
        name: Its name.
        expected: What is expected of it; larger = better.
        seconds: Cost of its whole training.
        num_parameters: Its size.
    """

    name: str
    expected: float
    seconds: float
    num_parameters: float = 0.0


@dataclass(frozen=True)
class Trial:
    """How one whole training ended.

    Attributes:
        model: What was trained.
        value: What val says, larger = better; None where the training failed.
        standard_error: Standard error of the value from the finite number of val images; None = unknown.
        reason: Reason of the failure, on one line; empty where it did not fail.
        seconds: Seconds that it really took; about 0 where it was read back.
    """

    model: str
    value: float | None
    standard_error: float | None = None
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Selected:
    """The model that is handed over.

    Attributes:
        model: Its name.
        trials: What was trained, in order.
        booked_seconds: What that cost, by the plan.
        ending: Reason that nothing more was trained.
    """

    model: str
    trials: tuple[Trial, ...]
    booked_seconds: float
    ending: Ending

    @property
    def trained(self) -> list[Trial]:
        """Trainings that came to their end, the best first."""
        done = [trial for trial in self.trials if trial.value is not None]
        return sorted(done, key=lambda trial: -(trial.value or 0.0))

    @property
    def failed(self) -> dict[str, str]:
        """Models of which the training failed, and why."""
        return {trial.model: trial.reason for trial in self.trials if trial.value is None}


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The order in which models are tried."""
    return sorted(candidates, key=lambda each: (-each.expected, each.num_parameters, each.name))


def equal_costs(seconds: Mapping[str, float]) -> dict[str, float]:
    """Costs that lie within the noise of measuring as equal: the median of each group, from the least on.

    >>> equal_costs({"a": 10.0, "b": 11.0, "c": 12.0, "d": 20.0})
    {'a': 11.0, 'b': 11.0, 'c': 11.0, 'd': 20.0}
    """
    left, medians = sorted(seconds.values()), dict[float, float]()
    while left:
        group = [cost for cost in left if cost <= left[0] * (1 + COST_NOISE)]
        medians |= dict.fromkeys(group, float(np.median(group)))
        left = left[len(group) :]
    return {name: medians[cost] for name, cost in seconds.items()}


def seconds_of_all(candidates: Sequence[Candidate], num_parallel: int = 1) -> float:
    """Seconds to train all models, as many at a time as there are places."""
    return sum(max(each.seconds for each in some) for some in _rounds(in_order(candidates), math.inf, num_parallel))


def refuse_small_budget(candidates: Sequence[Candidate], seconds: float, *, beside: float = 0.0) -> None:
    """Raise where not even the fastest model can be trained.

    Args:
        candidates: The models.
        seconds: The budget.
        beside: What of it goes to something else than trainings.

    Raises:
        UsageError: With the least budget that works.
    """
    least = min(candidates, key=lambda each: (each.seconds, each.name))
    if seconds - beside < least.seconds - _ROUNDING:
        all_else = f", {duration(beside)} of it before and after the training" if beside else ""
        raise UsageError(
            f"The budget of {duration(seconds)} is below one training: the least that works is "
            f"{duration(least.seconds + beside)}, for {least.name}{all_else}. Give a larger --budget, fewer --epochs, or a "
            "smaller --image-size."
        )


def refuse_spent_budget(seconds: float, *, spent: float, still: float) -> None:
    """Raise where the budget is gone before all trainings are timed.

    Args:
        seconds: The budget.
        spent: What of it is gone, and what the page takes.
        still: What timing the others and the fastest training known so far take.

    Raises:
        UsageError: With about the least budget that works.
    """
    if spent > seconds:
        raise UsageError(
            f"The budget of {duration(seconds)} was gone before all trainings were timed: the least that works is about "
            f"{duration(spent + still)}, as far as is known by now. Give a larger --budget, or fewer --models."
        )


def planned(candidates: Sequence[Candidate], seconds: float, num_parallel: int = 1) -> list[list[Candidate]]:
    """What is trained together, round by round, if no training fails and none reaches the limit of val."""
    return list(_rounds(in_order(candidates), seconds, num_parallel))


def run_selection(
    candidates: Sequence[Candidate],
    seconds: float,
    train: Callable[[Sequence[str]], Sequence[Trial]],
    *,
    num_parallel: int = 1,
    limit: float | None = None,
    is_blind: bool = False,
    on_round: Callable[[float], object] = lambda _: None,
) -> Selected:
    """Train models in order while the budget lasts, and take the best on val.

    Args:
        candidates: All models, at least one.
        seconds: Budget.
        train: Trains models wholly, at the same time, and says how each ended, in their order.
        num_parallel: Models that are trained at the same time, ≥ 1.
        limit: Largest value that val can show; None where there is none.
        is_blind: Whether val is too small to tell models apart: then the first in the order that fits is the only one.
        on_round: Called after each round with the seconds that it was booked for.

    Raises:
        UsageError: The budget is below one training; the message has the least that works.
        DataError: The training of every model failed.
    """
    refuse_small_budget(candidates, seconds)
    order, trials, booked = in_order(candidates), list[Trial](), 0.0

    def go(some: Sequence[Candidate]) -> None:
        nonlocal booked
        trials.extend(train([each.name for each in some]))
        seconds_of_round = max(each.seconds for each in some)
        booked += seconds_of_round
        on_round(seconds_of_round)

    def best() -> Trial | None:
        return _best(trials, order)

    ending: Ending = "budget"
    for some in _rounds(order, seconds, 1 if is_blind else num_parallel):
        go(some)
        leader = best()
        if leader is not None and (is_blind or _is_at(leader.value, limit)):
            ending = "val tells nothing" if is_blind else "limit of val"
            break
    while (leader := best()) is None:  # nothing within the budget ended with a model: what is soonest
        left = [each for each in order if each.name not in {trial.model for trial in trials}]
        if not left:
            reasons = "; ".join(f"{trial.model}: {trial.reason}" for trial in trials)
            raise DataError(f"No training ended with a model. {reasons}")
        go([min(left, key=lambda each: each.seconds)])
    smallest = _smallest_left(order, trials)
    if ending == "limit of val" and smallest and smallest.seconds <= seconds - booked + _ROUNDING:
        go([smallest])
        leader = best() or leader
    if len(trials) == len(order) and ending == "budget":
        ending = "all trained"
    return Selected(leader.model, tuple(trials), booked, ending)


def _rounds(order: Sequence[Candidate], seconds: float, num_parallel: int) -> Iterator[list[Candidate]]:
    """The next models that fit, as many as there are places; a round takes as long as its longest training."""
    left, remaining = list(order), seconds
    while some := [each for each in left if each.seconds <= remaining + _ROUNDING][:num_parallel]:
        yield some
        left = [each for each in left if each not in some]
        remaining -= max(each.seconds for each in some)


def _best(trials: Sequence[Trial], order: Sequence[Candidate]) -> Trial | None:
    sizes = {each.name: each.num_parameters for each in order}
    done = [trial for trial in trials if trial.value is not None]
    return min(done, key=lambda t: (-(t.value or 0.0), sizes[t.model], t.model), default=None)


def _smallest_left(order: Sequence[Candidate], trials: Sequence[Trial]) -> Candidate | None:
    """The model with the fewest parameters, where it was not trained and is smaller than all that were."""
    smallest = min(order, key=lambda each: (each.num_parameters, each.seconds, each.name))
    trained = {trial.model for trial in trials}
    least = min((each.num_parameters for each in order if each.name in trained), default=math.inf)
    return smallest if smallest.name not in trained and smallest.num_parameters < least else None


def _is_at(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value >= limit - _ROUNDING


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


def expected_regret(selected: Selected, model: str, shared_error: float, *, limit: float | None, seed: int) -> float | None:
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
