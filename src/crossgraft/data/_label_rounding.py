"""Share out images with several labels so that every label is cut at the wanted shares, up to a proven bound.

Images (or groups) with the same number of marks on every label are interchangeable, so what is decided is how many units
of each *pattern* go to each part. Cutting a pattern exactly at the share leaves a fraction of a unit; these fractions are
rounded as in the proof of the Beck–Fiala theorem: while more patterns float than there are labels to watch, some
combination of them can be moved without changing any watched label, until one of them becomes whole. A label is no longer
watched once so little of it floats that rounding cannot move it farther than the bound.

Reference:
    Beck and Fiala, Integer-making theorems, Discrete Applied Mathematics 3(1), 1981.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

Marks = Float64[np.ndarray, "num_patterns num_marks"]
"""What one unit of each pattern counts: images of each label, and images in all."""
Units = Int64[np.ndarray, " num_patterns"]
"""How many units there are of each pattern."""
Shared = Int64[np.ndarray, "num_patterns num_parts"]
"""How many units of each pattern are in each part."""

_WHOLE = 1e-9


def share_out_patterns(
    marks: Marks, units: Units, shares: Float64[np.ndarray, " num_parts"], rng: np.random.Generator
) -> Shared:
    """Cut every mark at ``shares``, by halving the list of parts again and again.

    Args:
        marks: Counts, not negative.
        units: Positive.
        shares: Positive, adding up to 1.
        rng: Generator that decides between equally good roundings.

    Returns:
        In every part, every mark differs from its share by less than ``rounding_bound(marks, shares)``.
    """
    if len(shares) == 1:
        return units[:, np.newaxis]
    middle = _middle(shares)
    first = _round(marks, units, float(shares[:middle].sum() / shares.sum()), rng)
    halves = ((first, shares[:middle]), (units - first, shares[middle:]))
    return np.concatenate([share_out_patterns(marks, half, part, rng) for half, part in halves], axis=1)


def rounding_bound(marks: Marks, shares: Float64[np.ndarray, " num_parts"]) -> float:
    """How far a mark of a part can be from its share: t for two parts, below 2 t for three, below 2.27 t for equal ones.

    One cut moves each mark by less than t, the largest sum of marks of one unit. A part inherits the deviation of the list
    it was cut from in proportion to its share p of the list's share P, so it is off by less than t·Σ p/P over all lists on
    its way, the whole one left out. Of equal parts the last list has 1, the one before at least 2, then 3, 5, 9, …, and
    1 + 1/2 + 1/3 + 1/5 + 1/9 + … < 2.27.
    """
    return float(marks.sum(axis=1).max(initial=0.0)) * float(_inherited(shares).max())


def _inherited(shares: Float64[np.ndarray, " num_parts"]) -> Float64[np.ndarray, " num_parts"]:
    """Σ p/P for every part; 0 where nothing was cut."""
    if len(shares) == 1:
        return np.zeros(1)
    middle = _middle(shares)
    halves = (shares[:middle], shares[middle:])
    return np.concatenate([_inherited(half) + half / half.sum() for half in halves])


def _middle(shares: Float64[np.ndarray, " num_parts"]) -> int:
    """Where a list of parts is cut: as near to its middle as possible, by share."""
    before = np.cumsum(shares)[:-1]
    return int(np.argmin(np.abs(before - shares.sum() / 2))) + 1


def _round(marks: Marks, units: Units, share: float, rng: np.random.Generator) -> Units:
    """How many units of each pattern go to the first of two parts; every mark is off by less than the bound."""
    exact = units * share
    counts = np.floor(exact + _WHOLE).astype(np.int64)
    fractions = np.maximum(exact - counts, 0.0)
    floating = rng.permutation(np.flatnonzero(fractions > _WHOLE))
    if floating.size:
        counts[floating] += _round_fractions(marks[floating], fractions[floating], rng)
    return counts


def _round_fractions(marks: Marks, fractions: Float64[np.ndarray, " num_patterns"], rng: np.random.Generator) -> Units:
    """0 or 1 for every fraction in (0, 1), such that each Σ marks·value moves by less than the largest row sum."""
    bound = marks.sum(axis=1).max()
    values = fractions.copy()
    left = marks.sum(axis=0)  # of each mark, how much still floats
    waiting = list(range(len(values)))
    block: list[int] = []
    while waiting or block:
        watched = np.flatnonzero(left > bound)
        while waiting and len(block) <= len(watched):
            block.append(waiting.pop())
        members = np.asarray(block)
        direction = _unwatched_direction(marks[np.ix_(members, watched)], rng)
        values[members] += _longest_step(values[members], direction) * direction
        whole = (values[members] < _WHOLE) | (values[members] > 1 - _WHOLE)
        values[members[whole]] = np.round(values[members[whole]])
        left = left - marks[members[whole]].sum(axis=0)
        block = members[~whole].tolist()
    return values.astype(np.int64)


def _unwatched_direction(watched: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A combination of the block that changes no watched mark, in a random sense.

    More than ``bound`` of every watched mark floats, and one pattern floats at most ``bound`` in all, so more patterns
    float than marks are watched: the block has a pattern more than marks, and there is such a combination.
    """
    num_members, num_watched = watched.shape
    direction = np.ones(num_members) if num_watched == 0 else np.linalg.svd(watched.T)[2][-1]
    return direction * (1 if rng.random() < 0.5 else -1)


def _longest_step(values: np.ndarray, direction: np.ndarray) -> float:
    """How far to go until the first value is 0 or 1."""
    moving = np.abs(direction) > 1e-12
    room = np.where(direction > 0, 1 - values, values)[moving]
    return float((room / np.abs(direction[moving])).min())
