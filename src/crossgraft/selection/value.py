"""What looking at some models is worth: how much better the model that is handed over is expected to be afterwards.

The knowledge gradient of a set of observations (Frazier, Powell and Dayanik, INFORMS Journal on Computing 21 (2009) 599): with a
Gaussian belief N(μ, Σ) that will be N(μ', Σ'), μ' is N(μ, Σ − Σ') before the observations are made. Only models whose
training can still be finished within the budget afterwards can be handed over, so what is done also has to leave enough for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from jaxtyping import Bool, Float64

from crossgraft.seeding import generator

NUM_DRAWS = 512

PerModel = Float64[np.ndarray, " num_models"]
Square = Float64[np.ndarray, "num_models num_models"]


class Sees(Protocol):
    """What observations that are still to come will tell; see ``rank.conditioning.Foresight``."""

    mean: PerModel
    covariance: Square

    def says_something(self, kind: str) -> bool:
        """Whether an observation of this kind changes any belief."""
        ...

    def covariance_after(self, kind: str, places: Sequence[int], standard_error: float | None) -> Square:
        """Covariance once networks were observed."""
        ...


def expected_gain(
    foresight: Sees,
    covariance_after: Square,
    finishable_before: Bool[np.ndarray, " num_models"],
    finishable_after: Bool[np.ndarray, " num_models"],
    *,
    seed: int,
) -> float:
    """Expected improvement of the model that is handed over, in normal scores; below 0 where it costs a better one.

    Estimated from draws that are the same for every set of observations. The model that leads afterwards without surprises is
    a control variate, so that a gain near 0 is hardly noisy.

    Args:
        foresight: What is believed now.
        covariance_after: Covariance once the observations are made.
        finishable_before: Models whose training can be finished now.
        finishable_after: The same afterwards.
        seed: Random seed.
    """
    if not finishable_after.any():
        return -np.inf
    mean = foresight.mean
    best_now = mean[finishable_before].max()
    moved = _factor(_contrasts(foresight.covariance - covariance_after))
    draws = generator(seed, "expected gain").standard_normal((moved.shape[1], NUM_DRAWS // 2))
    shift = moved @ np.concatenate([draws, -draws], axis=1)
    left = np.flatnonzero(finishable_after)
    leader = left[np.argmax(mean[left])]
    futures = mean[left, None] + shift[left]
    gain = (futures.max(axis=0) - futures[np.flatnonzero(left == leader)[0]]).mean()
    return float(mean[leader] + gain - best_now)


def leading_sets(order: Sequence[str]) -> list[tuple[str, ...]]:
    """The first 1, 2, 3, 4, 6, 8, 12 … of an order, and all.

    >>> [len(each) for each in leading_sets("abcdefg")]
    [1, 2, 3, 4, 6, 7]
    """
    sizes, step = [1, 2, 3], 4
    while step < len(order):
        sizes += [step, step + step // 2]
        step *= 2
    return [tuple(order[:size]) for size in sorted({min(size, len(order)) for size in [*sizes, len(order)]})]


def _contrasts(covariance: Square) -> Square:
    """Covariance of the differences to the mean of all: a level that all share decides nothing."""
    centred = covariance - covariance.mean(axis=0)
    return centred - centred.mean(axis=1, keepdims=True)


def _factor(moved: Square) -> Square:
    """A matrix whose product with its transpose is ``moved``; rounding below 0 counts as 0."""
    values, vectors = np.linalg.eigh((moved + moved.T) / 2)
    return vectors * np.sqrt(np.clip(values, 0.0, None))
