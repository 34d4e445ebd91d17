"""A small schedule: the learning rate is halved again and again."""

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.tune.schedules import Schedule, Steps


@dataclass(frozen=True)
class Halving(Schedule):
    """Half of the rate after every so many steps.

    Args:
        every: Steps.
    """

    name: ClassVar[str] = "halving"
    title: ClassVar[str] = "Halving"
    citation: ClassVar[str] = "Example of a third-party schedule; no paper"

    every: int = 2

    def share(self, step: int, steps: Steps) -> float:
        """Falling from 1."""
        return 0.5 ** ((step - steps.warmup) // self.every)
