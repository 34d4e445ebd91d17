"""How often intervals hold the truth: what a design is, and how it is judged; used by tests and by ``recipes/coverage.py``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class Found(NamedTuple):
    """What one draw gave; no ends where the product gives no interval."""

    value: float
    low: float | None
    high: float | None


Draw = Callable[[np.random.Generator], Found | None]
"""None: the quantity has no meaning on these images, a class is missing for example, and another draw is made."""


@dataclass(frozen=True)
class Design:
    """A situation that can be drawn again and again.

    Attributes:
        quantity: What the interval is of.
        words: Numbers that describe the situation.
        truth: What the interval should hold; a function where it takes long to compute.
        draw: One set of images, and the interval.
        has_interval: False where the product says that it has none.
        in_ci: False where draws take too long for CI.
    """

    quantity: str
    words: str
    truth: float | Callable[[], float]
    draw: Draw
    has_interval: bool = True
    in_ci: bool = True

    @property
    def name(self) -> str:
        """Both, which is unique."""
        return f"{self.quantity}: {self.words}"


class Coverage(NamedTuple):
    """How a design came out.

    Attributes:
        draws: Draws with an interval.
        held: Share of them that hold the truth.
        below: Share of them in which the truth lies below the interval.
        above: Share in which it lies above.
        width: Mean width.
        without: Draws without an interval.
        no_width: Intervals of width 0.
    """

    draws: int
    held: float
    below: float
    above: float
    width: float
    without: int
    no_width: int


def coverage_of(design: Design, num_draws: int, *, scale: float = 1.0) -> Coverage:
    """Draw a design; ``scale`` shrinks every interval towards its value, to see that this is noticed."""
    seed = int.from_bytes(hashlib.sha256(design.name.encode()).digest()[:4], "big")
    rng = np.random.default_rng(seed)
    ends: list[tuple[float, float]] = []
    without = 0
    while len(ends) + without < num_draws:
        found = design.draw(rng)
        if found is None:
            continue
        if found.low is None or found.high is None:
            without += 1
            continue
        ends.append((found.value - scale * (found.value - found.low), found.value + scale * (found.high - found.value)))
    if not ends:
        return Coverage(0, float("nan"), float("nan"), float("nan"), float("nan"), without, 0)
    low, high = np.array(ends).T
    truth = design.truth() if callable(design.truth) else design.truth
    below, above = truth < low - 1e-9, truth > high + 1e-9
    return Coverage(
        draws=len(ends),
        held=float(1 - below.mean() - above.mean()),
        below=float(below.mean()),
        above=float(above.mean()),
        width=float((high - low).mean()),
        without=without,
        no_width=int((high - low <= 1e-12).sum()),
    )
