"""Which neighbours on a way between two networks a line may join."""

from __future__ import annotations

_ROUNDING = 1e-9


LARGEST_STEP = 0.25
"""Largest change of a CKA from one measured network to the next that a line may cross: a quarter of its range."""


def may_be_joined(alphas: tuple[float, float], similarities: tuple[float, float], *, has_jumps: bool) -> bool:
    """Whether a line may join two neighbours on the way: not across a large or unknown change, nor at an end with a jump."""
    step = abs(similarities[0] - similarities[1])
    at_an_end = alphas[0] == 0 or alphas[1] == 1
    return step <= LARGEST_STEP + _ROUNDING and not (has_jumps and at_an_end)
