"""The learning rate of each step, as a share of the largest one."""

from __future__ import annotations

import math
from dataclasses import dataclass

from crossgraft.tune.engine.settings import ScheduleName, TrainerSettings


@dataclass(frozen=True)
class Schedule:
    """Share of the largest learning rate at step ``t`` of ``T`` steps, ``w`` of them warm-up, final share ``m``.

    - warm-up, ``t < w``: ``(t + 1) / (w + 1)``: above 0 from the first step on, and 1 is reached at ``t = w``;
    - cosine, ``t >= w``: ``m + (1 - m) (1 + cos(pi p)) / 2`` with ``p = (t - w) / (T - 1 - w)``, so that the last step,
      ``t = T - 1``, has the share ``m``; a single step after warm-up has the share 1;
    - constant, ``t >= w``: 1.

    Attributes:
        total_steps: T.
        warmup_steps: w, smaller than T.
        name: ``cosine`` or ``constant``.
        final_share: m, in [0, 1].
    """

    total_steps: int
    warmup_steps: int
    name: ScheduleName
    final_share: float

    def share(self, step: int) -> float:
        """Share at ``step``, counted from 0.

        >>> [round(Schedule(5, 2, "cosine", 0.0).share(t), 3) for t in range(5)]
        [0.333, 0.667, 1.0, 0.5, 0.0]
        """
        if step < self.warmup_steps:
            return (step + 1) / (self.warmup_steps + 1)
        if self.name == "constant":
            return 1.0
        falling = self.total_steps - 1 - self.warmup_steps
        progress = min(1.0, (step - self.warmup_steps) / falling) if falling > 0 else 0.0
        return self.final_share + (1 - self.final_share) * (1 + math.cos(math.pi * progress)) / 2


def make_schedule(settings: TrainerSettings, steps_per_epoch: int, epochs: int) -> Schedule:
    """The schedule of ``epochs`` epochs; warm-up that would fill them all is cut to half of the steps."""
    total = steps_per_epoch * epochs
    warmup = min(round(settings.warmup_epochs * steps_per_epoch), total // 2)
    return Schedule(total, warmup, settings.schedule, settings.final_learning_rate_share)
