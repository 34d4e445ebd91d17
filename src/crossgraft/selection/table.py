"""A table of published results in place of trainings: the same scheduler decides, and every action takes no time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crossgraft.errors import DataError
from crossgraft.selection.trials import FULL, Action, Trial, TrialPlan


@dataclass(frozen=True)
class TableTrials:
    """Trials whose outcome is known.

    Attributes:
        seconds: Cost of every action, in any one unit; every model has ``full``.
        values: What each action shows, larger = better; an action without one fails.
        standard_errors: Standard error of what each kind shows.
        num_parallel: Actions at the same time.
        shared_error: Share of the variance of errors that is the same for all models.
        going_on_seconds: Cost of each model to take up a training that was paused.
    """

    seconds: Mapping[Action, float]
    values: Mapping[Action, float]
    standard_errors: Mapping[str, float] = field(default_factory=dict[str, float])
    num_parallel: int = 1
    shared_error: float = 0.0
    going_on_seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        models = {action.model for action in self.seconds}
        missing = sorted(model for model in models if Action(model, FULL) not in self.seconds)
        if missing:
            raise DataError(f"The table has no cost of fine-tuning {', '.join(missing)} fully.")

    def plan(self) -> TrialPlan:
        """Costs of the table."""
        return TrialPlan(
            self.seconds, self.standard_errors, self.num_parallel, self.shared_error, self.going_on_seconds
        )

    def run(self, actions: Sequence[Action]) -> list[Trial]:
        """Look every action up."""
        return [
            Trial(action, self.values[action], self.standard_errors.get(action.kind))
            if action in self.values
            else Trial(action, None, reason="the table has no value")
            for action in actions
        ]
