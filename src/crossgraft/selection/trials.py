"""What a scheduler can ask for, and who does it: a training, or a table of published results in its place."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

FULL = "full"
"""Kind of the fine-tuning that is handed over: all epochs, full resolution."""
_CURVE = "curve:epoch="


class Action(NamedTuple):
    """Something that can be done with one model.

    Attributes:
        model: Name of the model.
        kind: ``score:NAME`` (frozen features), ``low:size=SHARE`` (a training at a share of the resolution),
            ``low:epochs=SHARE`` (a training of its own with a share of the epochs), ``curve:epoch=E`` (the training goes on to
            epoch E and pauses) or ``full`` (it goes to its end).
    """

    model: str
    kind: str


@dataclass(frozen=True)
class Trial:
    """How an action ended.

    Attributes:
        action: What was done.
        value: What was seen, larger = better; None where it failed.
        standard_error: Standard error of the value from the finite number of val images; None = unknown.
        reason: Reason of the failure, on one line; empty where it did not fail.
        seconds: Seconds that it really took; 0 where it was read back.
    """

    action: Action
    value: float | None
    standard_error: float | None = None
    reason: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Rung:
    """Actions of one kind that are done together.

    Attributes:
        kind: Their kind.
        models: Models that it is done with, in the order in which they are begun.
    """

    kind: str
    models: tuple[str, ...]

    @property
    def actions(self) -> list[Action]:
        """One per model."""
        return [Action(model, self.kind) for model in self.models]


@dataclass(frozen=True)
class TrialPlan:
    """Costs, measured once before the first action, so that a selection that goes on later decides alike.

    Attributes:
        seconds: Seconds of every action that can be done, from nothing; every model has ``full``.
        standard_errors: Expected standard error of the value of each kind; a kind without one is exact, or its error unknown.
        num_parallel: Actions that are done at the same time.
        shared_error: Share in [0, 1) of the variance of errors that is the same for all models, which are measured on the same
            images; it tells nothing apart.
        going_on_seconds: Seconds of each model to take up a training that was paused; a model without an entry takes none.
    """

    seconds: Mapping[Action, float]
    standard_errors: Mapping[str, float]
    num_parallel: int = 1
    shared_error: float = 0.0
    going_on_seconds: Mapping[str, float] = field(default_factory=dict[str, float])

    def own_error(self, standard_error: float | None) -> float | None:
        """The part of an error of one value that differs between models."""
        return None if standard_error is None else standard_error * math.sqrt(1 - self.shared_error)

    @property
    def models(self) -> tuple[str, ...]:
        """All models, in the order of the zoo."""
        return tuple(action.model for action in self.seconds if action.kind == FULL)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds, each once."""
        return tuple(dict.fromkeys(action.kind for action in self.seconds))

    @property
    def seconds_of_all(self) -> float:
        """Seconds to fine-tune all models, as many at a time as actions."""
        return self.makespan([self.seconds[Action(model, FULL)] for model in self.models])

    def left(self, action: Action, done: Collection[str]) -> float | None:
        """Seconds of an action after others of its model; None where it is done, or nothing is left to do of it.

        A training that goes on costs only the epochs that are left, and to be taken up again.
        """
        if action not in self.seconds or action.kind in done:
            return None
        if FULL in done and not action.kind.startswith("score:"):
            return None
        if not goes_on(action.kind):
            return self.seconds[action]
        before = [self.seconds[Action(action.model, kind)] for kind in done if goes_on(kind)]
        left = self.seconds[action] - max(before, default=0.0)
        if left <= 0 and action.kind != FULL:
            return None
        return max(left, 0.0) + (self.going_on_seconds.get(action.model, 0.0) if before else 0.0)

    def makespan(self, seconds: Sequence[float]) -> float:
        """Seconds until all pieces are done, each begun in order as soon as a place is free."""
        places = [0.0] * max(1, self.num_parallel)
        for each in seconds:
            places[places.index(min(places))] += each
        return max(places)


class Trials(Protocol):
    """Does what a scheduler asks for. A resumed one reads back what was done."""

    def plan(self) -> TrialPlan:
        """Costs of everything."""
        ...

    def run(self, actions: Sequence[Action]) -> list[Trial]:
        """One trial per action, in their order; one that fails has a reason."""
        ...


def goes_on(kind: str) -> bool:
    """Whether it is a part of the one training at full resolution that is paused and goes on."""
    return kind == FULL or kind.startswith(_CURVE)


def curve_kind(epoch: int) -> str:
    """The training up to an epoch, counted from 1."""
    return f"{_CURVE}{epoch}"


def epoch_of(kind: str) -> int:
    """Epoch of a ``curve`` kind."""
    return int(kind.removeprefix(_CURVE))
