"""Decides what to try next from what is believed, until nothing is worth its cost; then one model is finished.

Each round, ladders are considered: the leading 1, 2, 3, 4, 6, 8 … models, looked at with one kind of action after the other, of
which the best go on. The first rung of the ladder with the largest expected gain within the budget is done (``value``), and what
was seen decides anew. What is booked are the costs of the plan, never the clock, so that a selection that was stopped goes on
with the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from jaxtyping import Bool

from crossgraft.errors import DataError, UsageError
from crossgraft.rank.belief import Belief
from crossgraft.selection.ladders import best_rung
from crossgraft.selection.preference import Preference, choose
from crossgraft.selection.state import Decision, State
from crossgraft.selection.trials import FULL, Action, Rung, Trial, TrialPlan, Trials
from crossgraft.words.formatting import duration

LEAST_GAIN = 1e-3
"""Gains below this share of the largest standard deviation of the prior are none."""
_MOST_ROUNDS = 1000


@dataclass(frozen=True, eq=False)
class Selected:
    """The model that is handed over.

    Attributes:
        model: Its name.
        belief: What is believed at the end.
        prior: What was believed before the first trial.
        state: What was decided and done.
        preference: Choice among the models that cannot be told apart.
        next_hour: What an hour more would be spent on; None where nothing would be worth it.
    """

    model: str
    belief: Belief
    prior: Belief
    state: State
    preference: Preference
    next_hour: Decision | None = None


class Journal(Protocol):
    """Keeps decisions and trials, so that a selection that was stopped goes on with the same ones."""

    def read(self, number: int) -> tuple[Decision, list[Trial] | None] | None:
        """A decision of an earlier attempt and, where it was carried out, its trials."""
        ...

    def write(self, number: int, decision: Decision, trials: Sequence[Trial] | None) -> None:
        """Keep a decision before it is carried out (None), and again afterwards."""
        ...


@dataclass
class Forgets:
    """A journal of a selection that is never stopped."""

    kept: list[Decision] = field(default_factory=list[Decision])

    def read(self, number: int) -> tuple[Decision, list[Trial] | None] | None:
        """Nothing."""
        return None

    def write(self, number: int, decision: Decision, trials: Sequence[Trial] | None) -> None:
        """Nothing is kept."""


def run_selection(
    trials: Trials,
    prior: Belief,
    seconds: float,
    *,
    prefer: str = "accurate",
    sizes: Mapping[str, float] | None = None,
    is_blind: bool = False,
    journal: Journal | None = None,
    seed: int = 0,
    told: Callable[[Decision, Sequence[Trial], State], object] = lambda decision, trials, state: None,
) -> Selected:
    """Try models until nothing is worth its cost, and finish one.

    Args:
        trials: Does what is decided.
        prior: What is believed before.
        seconds: Budget.
        prefer: ``accurate``, ``small`` or ``fast``: which of the models that cannot be told apart.
        sizes: Size of each model, for ``small``; without, and for ``fast``, the time of its training counts.
        is_blind: Whether val is too small to tell models apart: then nothing is tried, and prior and cost decide.
        journal: Keeps what was decided.
        seed: Random seed of the draws behind expected gains.
        told: Called after each rung.

    Raises:
        UsageError: The budget is below one training; the message has the least that works.
        DataError: The training of every model failed.
    """
    plan, journal = trials.plan(), journal or Forgets()
    refuse_small_budget(plan, seconds)
    state = State(plan, seconds)
    costs = {model: plan.seconds[Action(model, FULL)] for model in plan.models}
    weights = costs if prefer == "fast" or sizes is None else sizes
    least = LEAST_GAIN * float(np.sqrt(np.max(np.diag(prior.foresight().covariance))))
    finished: dict[str, Preference] = {}
    for number in range(_MOST_ROUNDS):
        belief = prior.after(state.observations)
        kept = journal.read(number)
        decision = kept[0] if kept is not None else _decide(state, belief, least, seed, is_blind)
        if decision is None or decision.is_finish:
            among = _within_budget(state, belief)
            preference = choose(belief, among, prefer, weights, blind=costs if is_blind else None)
            if decision is None and state.is_finished(preference.model):
                preference = finished.get(preference.model, preference)
                hour = replace(state, seconds=state.booked + 3600.0)
                next_hour = _decide(hour, belief, least, seed, is_blind)
                return Selected(preference.model, belief, prior, state, preference, next_hour)
            finished[preference.model] = preference
            decision = decision or _finish(state, preference.model)
        if kept is None:
            journal.write(number, decision, None)
        found = kept[1] if kept is not None else None
        if found is None:
            found = trials.run(decision.rung.actions)
            journal.write(number, decision, found)
        state = state.after(decision, found)
        told(decision, found, state)
        if len(state.dropped) == len(plan.models):
            reasons = "; ".join(f"{model}: {reason}" for model, reason in state.dropped.items())
            raise DataError(f"No training ended with a model. {reasons}")
    raise DataError(f"The selection did not end within {_MOST_ROUNDS} rounds.")


def refuse_small_budget(plan: TrialPlan, seconds: float) -> None:
    """Raise where not even the fastest model can be fine-tuned.

    Raises:
        UsageError: With the least budget that works.
    """
    model, least = min(((model, plan.seconds[Action(model, FULL)]) for model in plan.models), key=lambda each: each[1])
    if seconds < least:
        raise UsageError(
            f"The budget of {duration(seconds)} is below one training: the least that works is {duration(least)}, for {model}. "
            "Give a larger --budget, fewer --epochs, or a smaller --image-size."
        )


def _decide(state: State, belief: Belief, least: float, seed: int, is_blind: bool) -> Decision | None:
    if is_blind or len(belief.models) == 1:
        return None
    return best_rung(state, belief.models, belief.foresight(), least=least, seed=seed)


def _finish(state: State, model: str) -> Decision:
    rung = Rung(FULL, (model,))
    return Decision(rung, _cost(state, rung), is_finish=True)


def _within_budget(state: State, belief: Belief) -> Bool[np.ndarray, " num_models"]:
    """Models that can be handed over; where failures have left none, the one that is finished soonest."""
    left = np.array(state.left_of_full(belief.models))
    found = left <= state.remaining + 1e-9
    return found if found.any() else np.arange(len(left)) == int(np.argmin(left))


def _cost(state: State, rung: Rung) -> float:
    seconds = [state.plan.left(action, state.done(action.model)) or 0.0 for action in rung.actions]
    return state.plan.makespan(seconds)
