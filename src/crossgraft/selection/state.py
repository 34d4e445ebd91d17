"""What was decided and done so far, and what that leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from crossgraft.rank.belief import Observation
from crossgraft.selection.trials import FULL, Action, Rung, Trial, TrialPlan


@dataclass(frozen=True)
class Decision:
    """What is done next, and why.

    Attributes:
        rung: What is done.
        seconds: What it costs by the plan.
        gain: Expected improvement of the model that is handed over, in normal scores; 0 for one that is finished.
        is_finish: Whether it finishes the model that leads, because nothing else is worth its cost.
    """

    rung: Rung
    seconds: float
    gain: float = 0.0
    is_finish: bool = False


@dataclass(frozen=True, eq=False)
class State:
    """What is known after some decisions.

    Attributes:
        plan: Costs.
        seconds: Budget.
        decisions: What was decided, in order.
        trials: What was done, in order.
    """

    plan: TrialPlan
    seconds: float
    decisions: tuple[Decision, ...] = ()
    trials: tuple[Trial, ...] = ()

    @property
    def booked(self) -> float:
        """Seconds of all decisions, by the plan."""
        return sum(decision.seconds for decision in self.decisions)

    @property
    def remaining(self) -> float:
        """Seconds of the budget that are left."""
        return self.seconds - self.booked

    @property
    def dropped(self) -> dict[str, str]:
        """Models of which a training failed, and why; a score that failed drops nothing."""
        failed = [trial for trial in self.trials if trial.value is None and not trial.action.kind.startswith("score:")]
        return {trial.action.model: trial.reason for trial in failed}

    @property
    def observations(self) -> list[Observation]:
        """What was seen, with the errors that differ between models."""
        return [
            Observation(trial.action.model, trial.action.kind, trial.value, self.plan.own_error(trial.standard_error))
            for trial in self.trials
            if trial.value is not None
        ]

    def done(self, model: str) -> list[str]:
        """Kinds of actions that were done with a model, whether or not they failed."""
        return [trial.action.kind for trial in self.trials if trial.action.model == model]

    def is_finished(self, model: str) -> bool:
        """Whether the training of a model came to its end."""
        return any(trial.action == Action(model, FULL) and trial.value is not None for trial in self.trials)

    def after(self, decision: Decision, trials: Sequence[Trial]) -> State:
        """With one more decision and its outcome."""
        return replace(self, decisions=(*self.decisions, decision), trials=(*self.trials, *trials))

    def left_of_full(self, models: Sequence[str], *, after: Sequence[str] = ()) -> list[float]:
        """Seconds until the training of each model ends, also after further kinds of actions; infinite where one failed."""
        dropped = self.dropped
        done = {model: list(after) for model in models}
        for trial in self.trials:
            done[trial.action.model].append(trial.action.kind)
        return [
            float("inf") if model in dropped else self.plan.left(Action(model, FULL), kinds) or 0.0
            for model, kinds in done.items()
        ]
