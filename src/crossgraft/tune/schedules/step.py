"""The learning rate falls by a factor at the beginning of given epochs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.errors import UsageError
from crossgraft.tune.schedules._schedule import Schedule, Steps


@dataclass(frozen=True)
class Step(Schedule):
    """γ^k where k is the number of milestones that the epoch has reached.

    With milestones 100 and 150 the epochs 0 to 99 (the first hundred) have the share 1, as with torch's ``MultiStepLR``.

    Args:
        at: Milestones: epochs from 0 in whose first step the rate falls, rising; one, or several.
        factor: γ in (0, 1).

    Raises:
        UsageError: Milestones do not rise from 1 on, or γ is not in (0, 1).
    """

    name: ClassVar[str] = "step"
    title: ClassVar[str] = "Steps down"
    citation: ClassVar[str] = "He, Zhang, Ren and Sun, Deep Residual Learning for Image Recognition, CVPR 2016, section 3.4"

    at: int | tuple[int, ...] = ()
    factor: float = 0.1

    def __post_init__(self) -> None:
        milestones = (self.at,) if isinstance(self.at, int) else tuple(self.at)
        object.__setattr__(self, "at", milestones)
        if not milestones or milestones[0] < 1 or any(b <= a for a, b in itertools.pairwise(milestones)):
            raise UsageError(
                "A step schedule needs the epochs at which the rate falls, rising from 1: step:at=[30,60],factor=0.1."
            )
        if not 0 < self.factor < 1 or math.isnan(self.factor):
            raise UsageError(f"factor of the step schedule is {self.factor}; it must lie between 0 and 1.")

    @property
    def milestones(self) -> tuple[int, ...]:
        """Epochs from 0, rising."""
        return (self.at,) if isinstance(self.at, int) else self.at

    def share(self, step: int, steps: Steps) -> float:
        """Falling by ``factor`` at each milestone.

        >>> schedule, steps = Step((2, 3), 0.1), Steps(total=8, warmup=0, per_epoch=2)
        >>> [round(schedule.share(step, steps), 3) for step in range(8)]
        [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.01, 0.01]
        """
        epoch = step // steps.per_epoch
        return self.factor ** sum(epoch >= milestone for milestone in self.milestones)

    def beyond(self, epochs: int) -> str | None:
        """The milestones that are no epoch of the training."""
        missed = [str(milestone) for milestone in self.milestones if milestone >= epochs]
        return f"epoch {', '.join(missed)}" if missed else None
