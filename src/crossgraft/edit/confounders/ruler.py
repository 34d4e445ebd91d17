"""A ruler: a scale with ticks along one edge of the picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal, get_args

import numpy as np

from crossgraft.edit._image_edit import Confounder, Leaf, Painted, Pixels, Scope, ShamKind, measured_in
from crossgraft.edit.confounders._drawing import Coverage, mixed
from crossgraft.errors import UsageError

Edge = Literal["left", "right", "top", "bottom"]

THICKNESS = 0.002
"""Thickness of the lines as a share of the shorter side."""
TICKS_PER_LONG_TICK = 5


@dataclass(frozen=True)
class Ruler(Confounder):
    """A line along an edge, with a longer tick at every fifth place.

    The lines lie on whole pixels, at least one wide and at least their own width apart; long ticks are at least three times as
    long as the lines are wide. In a small image the ticks are therefore farther apart and longer than the options say.

    Args:
        edge: Edge that it lies along: ``left``, ``right``, ``top`` or ``bottom``.
        tick: Distance between ticks as a share of the length of that edge.
        width: Length of the long ticks as a share of the shorter side; the others are half as long.
        value: Brightness of the lines as a share of the range.
    """

    name: ClassVar[str] = "ruler"
    title: ClassVar[str] = "Ruler"
    leaf: ClassVar[Leaf] = "external"
    scope: ClassVar[Scope] = "local"
    sham: ClassVar[ShamKind | None] = "shuffled"
    reference: ClassVar[str] = "Narla et al. 2018, Journal of Investigative Dermatology 138(10): 2108–2110"

    edge: Edge = field(default="left", metadata=measured_in("name"))
    tick: float = field(default=0.02, metadata=measured_in("share of the edge", low=0, high=1))
    width: float = field(default=0.04, metadata=measured_in("share of the shorter side", low=0, high=1))
    value: float = field(default=1.0, metadata=measured_in("share of the range", low=0, high=1))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.edge not in get_args(Edge):
            raise UsageError(f"edge of ruler must be {', '.join(get_args(Edge))}, got {self.edge!r}.")

    def edit(self, pixels: Pixels, rng: np.random.Generator) -> Painted:
        """The same in every image."""
        height, width = pixels.shape[:2]
        if self.edge in ("left", "right"):
            drawn = self._at_left(height, width)
            return mixed(pixels, drawn if self.edge == "left" else drawn[:, ::-1], self.value)
        drawn = self._at_left(width, height).T
        return mixed(pixels, drawn if self.edge == "top" else drawn[::-1], self.value)

    def _at_left(self, height: int, width: int) -> Coverage:
        side = min(height, width)
        thick = max(round(THICKNESS * side), 1)
        long = max(round(self.width * side), 3 * thick)
        short = max(round(self.width * side / 2), 2 * thick)
        drawn = np.zeros((height, width))
        drawn[:, :thick] = 1
        # starts that are twice the width apart keep that distance when they are rounded down
        step = max(self.tick * height, 2 * thick)
        for place, start in enumerate(np.arange(step / 2, height, step).astype(int)):
            drawn[start : start + thick, : short if place % TICKS_PER_LONG_TICK else long] = 1
        return drawn
