"""The same learning rate in every step after warm-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.tune.schedules._schedule import Schedule, Steps


@dataclass(frozen=True)
class Constant(Schedule):
    """1."""

    name: ClassVar[str] = "constant"
    title: ClassVar[str] = "Constant learning rate"
    citation: ClassVar[str] = (
        "Robbins and Monro, A Stochastic Approximation Method, Ann. Math. Stat. 22 (1951) 400, for a fixed rate"
    )

    def share(self, step: int, steps: Steps) -> float:
        """Always 1."""
        return 1.0
