"""Where names go beside their dots: the first of a few places that covers nothing, else the one that covers least."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

_DOT = 5.0  # half a dot with some air, in pixels
_NEAR, _DISTANCES = 7.0, (7.0, 14.0, 24.0, 36.0, 50.0, 66.0, 84.0, 104.0, 126.0)
_DIRECTIONS = 16
_FAR = 0.01  # a pixel away from the dot
_STILL_READ = 1.2  # nothing is covered but a piece of a line, and the dot is not far
_ON_A_LINE = 0.35  # a name over a line is still read; one over a dot or a name is not


class Spot(NamedTuple):
    """A place on the figure, in pixels."""

    x: float
    y: float


class _Box(NamedTuple):
    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: _Box) -> bool:
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )


@dataclass
class LabelPlaces:
    """The room inside the axes, in pixels, and what stands there already.

    Attributes:
        left: Left edge of the axes.
        right: Right edge of the axes.
        bottom: Bottom edge of the axes.
        top: Top edge of the axes.
        dots: That no name may cover.
        avoided: Points of lines, which names had better not cover.
    """

    left: float
    right: float
    bottom: float
    top: float
    dots: Sequence[Spot]
    avoided: Sequence[Spot] = ()
    _taken: list[_Box] = field(default_factory=list[_Box])

    def place(self, dot: Spot, width: float, height: float) -> tuple[float, float, bool]:
        """Lower left corner of the name of ``dot``, and whether it is so far away that a line has to lead there."""
        best: tuple[float, _Box, bool] | None = None
        for distance in _DISTANCES:
            for number in range(_DIRECTIONS):
                box = _box_at(dot, 2 * math.pi * number / _DIRECTIONS, distance, width, height)
                penalty = self._penalty(box) + _FAR * distance
                if best is None or penalty < best[0]:
                    best = penalty, box, distance > _NEAR
            if best is not None and best[0] < _STILL_READ:
                break  # nothing is covered; further away is no better
        box = best[1] if best is not None else _Box(dot.x, dot.y, dot.x, dot.y)
        self._taken.append(box)
        return box.left, box.bottom, best is not None and best[2]

    def _penalty(self, box: _Box) -> float:
        outside = max(
            0.0, self.left - box.left, box.right - self.right - 14, self.bottom - box.bottom, box.top - self.top
        )
        covered = sum(box.overlaps(other) for other in self._taken)
        covered += sum(box.overlaps(_Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT)) for x, y in self.dots)
        lines = sum(box.overlaps(_Box(x - 1, y - 1, x + 1, y + 1)) for x, y in self.avoided)
        return 10.0 * (outside > 0) + outside + 4.0 * covered + _ON_A_LINE * lines


def _box_at(dot: Spot, angle: float, distance: float, width: float, height: float) -> _Box:
    """The box whose edge is ``distance`` away from ``dot`` in this direction; 0 is to the right."""
    x, y = math.cos(angle), math.sin(angle)
    middle_x = dot.x + x * (distance + width / 2)
    middle_y = dot.y + y * (distance + height / 2)
    return _Box(middle_x - width / 2, middle_y - height / 2, middle_x + width / 2, middle_y + height / 2)
