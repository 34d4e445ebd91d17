"""Ladders that can be climbed next: sets of models, looked at more and more closely, of which the best go on at each rung."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from crossgraft.rank.foresight import NextLook
from crossgraft.selection.state import Decision, State
from crossgraft.selection.trials import Action, Rung
from crossgraft.selection.value import Finishable, Sees, expected_gain, leading_sizes

MOST_RUNGS = 3
"""Rungs that are looked ahead; longer ladders come about because each decision looks ahead anew."""
ALIKE = 0.99
"""Ladders with at least this share of the largest gain differ by no more than the error of draws, and the cheapest is taken."""


@dataclass(frozen=True)
class Ladder:
    """One way to go on.

    Attributes:
        rungs: The first as it would be done; the others stand for as many of the best of it.
        seconds: Cost of each rung.
        gain: Expected improvement of the model that is handed over, in normal scores.
    """

    rungs: tuple[Rung, ...]
    seconds: tuple[float, ...]
    gain: float


def best_rung(state: State, models: Sequence[str], foresight: Sees, *, least: float, seed: int) -> Decision | None:
    """The first rung of the ladder with the largest expected gain within the budget; None where none is worth it or fits."""
    of_full = np.array(state.left_of_full(models))
    now = of_full <= state.remaining + 1e-9
    if not now.any():
        return None
    places = {model: number for number, model in enumerate(models)}
    after: dict[tuple[str, ...], np.ndarray] = {}
    found: list[Ladder] = []
    for rungs, seconds in _ladders(state, models, foresight):
        kinds = tuple(rung.kind for rung in rungs)
        if kinds not in after:
            after[kinds] = np.array(state.left_of_full(models, after=kinds))
        remaining = state.remaining - sum(seconds) + 1e-9
        finishable = Finishable(now, of_full <= remaining, after[kinds] <= remaining)
        members = tuple(places[model] for model in rungs[0].models)
        looks = [
            NextLook(rung.kind, members, state.plan.own_error(state.plan.standard_errors.get(rung.kind)))
            for rung in rungs
        ]
        gain = expected_gain(foresight, looks, [len(rung.models) for rung in rungs], finishable, seed=seed)
        if gain > least:
            found.append(Ladder(rungs, seconds, gain))
    if not found:
        return None
    most = max(ladder.gain for ladder in found)
    best = min((each for each in found if each.gain >= ALIKE * most), key=lambda each: (sum(each.seconds), -each.gain))
    return Decision(best.rungs[0], best.seconds[0], best.gain)


def _ladders(
    state: State, models: Sequence[str], foresight: Sees
) -> Iterator[tuple[tuple[Rung, ...], tuple[float, ...]]]:
    """All that fit into the budget: kinds from cheap to dear, sets of leading models, ever fewer of them."""
    hopes = dict(zip(models, foresight.mean + np.sqrt(np.diag(foresight.covariance)), strict=True))
    dropped = state.dropped
    done = {model: state.done(model) for model in models}
    costs = {
        kind: {
            m: c for m in models if m not in dropped and (c := state.plan.left(Action(m, kind), done[m])) is not None
        }
        for kind in state.plan.kinds
        if foresight.says_something(kind)
    }
    kinds = sorted(
        (kind for kind, left in costs.items() if left), key=lambda kind: float(np.mean(list(costs[kind].values())))
    )
    for number in range(1, MOST_RUNGS + 1):
        for chain in combinations(kinds, number):
            able = [model for model in models if all(model in costs[kind] for kind in chain)]
            for order in _orders(able, hopes, costs[chain[0]]):
                for sizes in _sizes(len(order), number):
                    rungs = tuple(Rung(kind, order[:size]) for kind, size in zip(chain, sizes, strict=True))
                    seconds = _seconds(state, rungs, done)
                    if sum(seconds) <= state.remaining:
                        yield rungs, seconds


def _orders(able: Collection[str], hopes: dict[str, float], costs: dict[str, float]) -> list[tuple[str, ...]]:
    """By what may be hoped of a model, and by that per second."""
    if not able:
        return []
    lowest = min(hopes[model] for model in able)
    by_hope = tuple(sorted(able, key=lambda model: -hopes[model]))
    by_second = tuple(sorted(able, key=lambda model: -(hopes[model] - lowest) / max(costs[model], 1e-9)))
    return list(dict.fromkeys([by_hope, by_second]))


def _sizes(number: int, num_rungs: int) -> Iterator[tuple[int, ...]]:
    """Models on each rung, ever fewer, by equal factors from the first to the last."""
    for first in leading_sizes(number):
        if num_rungs == 1:
            yield (first,)
            continue
        for last in leading_sizes(number):
            factor = (last / first) ** (1 / (num_rungs - 1))
            sizes = tuple(round(first * factor**rung) for rung in range(num_rungs))
            if all(a > b for a, b in pairwise(sizes)):
                yield sizes


def _seconds(state: State, rungs: Sequence[Rung], done: dict[str, list[str]]) -> tuple[float, ...]:
    """Cost of each rung, after those before it."""
    found: list[float] = []
    for place, rung in enumerate(rungs):
        before = [each.kind for each in rungs[:place]]
        left = [state.plan.left(Action(model, rung.kind), [*done[model], *before]) or 0.0 for model in rung.models]
        found.append(state.plan.makespan(left))
    return tuple(found)
