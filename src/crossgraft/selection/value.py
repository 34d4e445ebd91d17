"""What looking at some models is worth: how much better the model that is handed over is expected to be afterwards.

The knowledge gradient of a set of observations (Frazier, Powell and Dayanik, INFORMS Journal on Computing 21 (2009) 599): with a
Gaussian belief N(μ, Σ) that will be N(μ', Σ'), μ' is N(μ, Σ − Σ') before the observations are made. A cheap look at many is worth
little by itself and much if the best go on, so what is valued is a ladder: a set of models, looked at more and more closely, of
which the best go on at each rung; μ then moves by independent steps. Only models whose training can still be finished within the
budget afterwards can be handed over, so what is done also has to leave enough for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float64

from crossgraft.rank.foresight import NextLook
from crossgraft.seeding import generator

NUM_DRAWS = 512

PerModel = Float64[np.ndarray, " num_models"]
Square = Float64[np.ndarray, "num_models num_models"]


class Sees(Protocol):
    """What observations that are still to come will tell; see ``rank.foresight.Foresight``."""

    mean: PerModel
    covariance: Square

    def says_something(self, kind: str) -> bool:
        """Whether an observation of this kind changes any belief."""
        ...

    def moves(self, looks: Sequence[NextLook]) -> list[Float64[np.ndarray, "num_models num_observed"]]:
        """What each look adds: the mean moves by this matrix times as many standard normal numbers."""
        ...


class Finishable(NamedTuple):
    """Models whose training can be finished within the budget.

    Attributes:
        now: Before anything more is done.
        left: After a ladder, of those that it leaves behind.
        through: After a ladder, of those that reach its end.
    """

    now: Bool[np.ndarray, " num_models"]
    left: Bool[np.ndarray, " num_models"]
    through: Bool[np.ndarray, " num_models"]


def expected_gain(
    foresight: Sees, looks: Sequence[NextLook], sizes: Sequence[int], finishable: Finishable, *, seed: int
) -> float:
    """Expected improvement of the model that is handed over, in normal scores; below 0 where it costs a better one.

    Estimated from draws that are the same for every ladder. That a model goes on is decided by what has been seen, so that the
    expectation of each is still its mean (optional stopping): the model that leads without surprises is a control variate, and a
    gain near 0 is hardly noisy. As if all of the set were looked at on each rung, which tells little more of those that go on.

    Args:
        foresight: What is believed now.
        looks: Rungs of a ladder, all with the same models.
        sizes: Models that each rung is done with, the best of those before.
        finishable: Models that can be handed over.
        seed: Random seed.
    """
    mean = foresight.mean
    best_now = mean[finishable.now].max()
    number, members = len(mean), np.asarray(looks[0].places)
    values = np.tile(mean[:, None], NUM_DRAWS)
    goes_on = np.ones((number, NUM_DRAWS), dtype=bool)
    for place, (look, moved) in enumerate(zip(looks, foresight.moves(looks), strict=True)):
        if place and sizes[place] < len(members):
            standing = np.where(goes_on, values, -np.inf)[members]
            behind = np.argpartition(-standing, sizes[place] - 1, axis=0)[sizes[place] :]
            goes_on[members[behind], np.arange(NUM_DRAWS)] = False
        step = (moved - moved.mean(axis=0)) @ _draws(seed, look.kind, number)[list(look.places)]
        values = np.where(goes_on, values + step, values)
    reaches = goes_on & np.isin(np.arange(number), members)[:, None]
    allowed = np.where(reaches, finishable.through[:, None], finishable.left[:, None])
    if not allowed.any(axis=0).all():
        return -np.inf
    left = np.flatnonzero(allowed.all(axis=1))
    leader = left[np.argmax(mean[left])] if len(left) else int(np.argmax(mean))
    gain = (np.where(allowed, values, -np.inf).max(axis=0) - values[leader]).mean()
    return float(mean[leader] + gain - best_now)


def leading_sets(order: Sequence[str]) -> list[tuple[str, ...]]:
    """The first 1, 2, 3, 4, 6, 8, 12 … of an order, and all.

    >>> [len(each) for each in leading_sets("abcdefg")]
    [1, 2, 3, 4, 6, 7]
    """
    return [tuple(order[:size]) for size in leading_sizes(len(order))]


def leading_sizes(number: int) -> list[int]:
    """1, 2, 3, 4, 6, 8, 12 … and all."""
    sizes, step = [1, 2, 3], 4
    while step < number:
        sizes += [step, step + step // 2]
        step *= 2
    return sorted({min(size, number) for size in [*sizes, number]})


@lru_cache(maxsize=64)
def _draws(seed: int, kind: str, number: int) -> Float64[np.ndarray, "num_models num_draws"]:
    """Standard normal numbers of each model, in pairs of opposite sign."""
    half = generator(seed, "expected gain", kind).standard_normal((number, NUM_DRAWS // 2))
    return np.concatenate([half, -half], axis=1)
