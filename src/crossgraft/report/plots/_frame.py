"""How far an axis goes: no control with a huge interval presses all models into one dot."""

from __future__ import annotations

import math
from collections.abc import Sequence

_LEAST_SPAN = 1e-6
_ROOM_SHARE = 0.5  # of the span, on either side: the axis becomes at most twice as long


def frame(needed: Sequence[float | None], further: Sequence[float | None]) -> tuple[float, float] | None:
    """Ends of an axis with all of ``needed``, and of ``further`` what is near; None where there is nothing.

    >>> frame([0.0, 1.0], [-0.25, 1.25])
    (-0.25, 1.25)
    >>> frame([0.0, 1.0], [-4.0, 4.0])
    (-0.5, 1.5)
    """
    known = [value for value in needed if value is not None and math.isfinite(value)]
    if not known:
        return None
    low, high = min(known), max(known)
    room = max(high - low, _LEAST_SPAN) * _ROOM_SHARE
    more = [value for value in further if value is not None and math.isfinite(value)]
    return max(min([low, *more]), low - room), min(max([high, *more]), high + room)
