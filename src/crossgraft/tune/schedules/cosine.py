"""Half a cosine from the largest learning rate down to a small one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.errors import UsageError
from crossgraft.tune.schedules._schedule import Schedule, Steps


@dataclass(frozen=True)
class Cosine(Schedule):
    """m + (1 − m) (1 + cos(π p)) / 2 with p = (t − w) / (T − 1 − w).

    The last step, t = T − 1, has the share m; a single step after warm-up has the share 1.

    Args:
        final_share: m: learning rate of the last step as a share of the largest, in [0, 1].

    Raises:
        UsageError: m is not in [0, 1].
    """

    name: ClassVar[str] = "cosine"
    title: ClassVar[str] = "Cosine annealing"
    citation: ClassVar[str] = "Loshchilov and Hutter, SGDR: Stochastic Gradient Descent with Warm Restarts, ICLR 2017, eq. 5"

    final_share: float = 0.01

    def __post_init__(self) -> None:
        if not 0 <= self.final_share <= 1:
            raise UsageError(f"final_share of the cosine is {self.final_share}; it must lie between 0 and 1.")

    def share(self, step: int, steps: Steps) -> float:
        """Falling from 1 to ``final_share``.

        >>> [round(Cosine(0.0).share(step, Steps(total=5, warmup=2, per_epoch=5)), 3) for step in range(2, 5)]
        [1.0, 0.5, 0.0]
        """
        falling = steps.total - 1 - steps.warmup
        progress = min(1.0, (step - steps.warmup) / falling) if falling > 0 else 0.0
        return self.final_share + (1 - self.final_share) * (1 + math.cos(math.pi * progress)) / 2
