"""One target of a table, and the ways to choose a model on it: that of ``select``, and simpler ones beside it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crossgraft.errors import DataError
from crossgraft.rank.expected_order import ExpectedOrder, imagenet_top1
from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.select.rule import Candidate, Trial, in_order, run_selection

METHODS = ("select", "prior", "prior_order_best_val", "imagenet", "halving", "random", "all_trained")
NUM_ORDERS = 200
"""Random orders of the models behind ``random`` and ``halving``."""
ROUNDING = 1e-9


@dataclass(frozen=True)
class Case:
    """One target with what every whole training costs, shows on val, and is worth.

    Attributes:
        candidates: Models with what is expected of them.
        val: Model → val; a model without one failed.
        truth: Model → result.
        top1: Model → ImageNet top-1 in percent, of those that have one.
        cheap: Kind of cheap training → model → its result; its cost is a share of the whole training.
        limit: Largest value that val can show.
    """

    candidates: Sequence[Candidate]
    val: Mapping[str, float]
    truth: Mapping[str, float]
    top1: Mapping[str, float]
    cheap: Mapping[str, Mapping[str, float]]
    limit: float | None

    @cached_property
    def seconds(self) -> dict[str, float]:
        """Cost of each whole training."""
        return {each.name: each.seconds for each in self.candidates}

    def regret(self, model: str) -> float:
        """How much worse a model is than the best."""
        return max(self.truth.values()) - self.truth[model]

    def best_on_val(self, models: Sequence[str]) -> str | None:
        """The best of models that were trained; None where all failed."""
        sizes = {each.name: each.num_parameters for each in self.candidates}
        done = [model for model in models if model in self.val]
        return min(done, key=lambda model: (-self.val[model], sizes[model], model), default=None)

    def trained_in(self, order: Sequence[str], seconds: float) -> list[str]:
        """Models that are trained in an order while the budget lasts."""
        trained: list[str] = []
        for model in order:
            if self.seconds[model] <= seconds + ROUNDING:
                trained.append(model)
                seconds -= self.seconds[model]
        return trained


def case_of(
    benchmark: Benchmark, target: int, models: np.ndarray, names: Sequence[str], expected: ExpectedOrder
) -> Case:
    """Costs that a table lacks are the median of the target, or all 1."""
    truth = dict(zip(names, benchmark.results[target, models].tolist(), strict=True))
    measured = (
        truth if benchmark.validation is None else dict(zip(names, benchmark.validation[target, models], strict=True))
    )
    seconds = np.ones(len(models)) if benchmark.seconds is None else benchmark.seconds[target, models]
    typical = float(np.nanmedian(seconds)) if np.isfinite(seconds).any() else 1.0
    seconds = np.where(np.isfinite(seconds), seconds, typical)
    candidates = [
        Candidate(name, float(value), float(cost), _size(name))
        for name, value, cost in zip(names, expected.values, seconds, strict=True)
    ]
    cheap = {
        kind: {n: float(v) for n, v in zip(names, column.values[target, models], strict=True) if np.isfinite(v)}
        for kind, column in benchmark.columns.items()
        if cheap_share(kind) is not None
    }
    top1 = {n: float(v) for n, v in zip(names, imagenet_top1(names), strict=True) if np.isfinite(v)}
    val = {name: float(value) for name, value in measured.items() if math.isfinite(value)}
    return Case(candidates, val, truth, top1, cheap, _limit(benchmark))


def regrets_of(case: Case, seconds: float, rng: np.random.Generator) -> dict[str, float]:
    """Regret of every way that can choose; a way whose trainings all fail chooses nothing."""
    order = [each.name for each in in_order(case.candidates)]
    fitting = [model for model in order if case.seconds[model] <= seconds + ROUNDING]
    chosen: dict[str, str | None] = {
        "select": _selected(case, seconds) if case.val else None,
        "prior": fitting[0],
        "prior_order_best_val": case.best_on_val(case.trained_in(order, seconds)),
        "imagenet": max((m for m in fitting if m in case.top1), key=lambda m: case.top1[m], default=None),
        "all_trained": case.best_on_val(order),
    }
    found = {method: case.regret(model) for method, model in chosen.items() if model is not None}
    names = np.array(sorted(case.seconds))
    orders = [rng.permutation(names).tolist() for _ in range(NUM_ORDERS)]
    by_chance = [case.best_on_val(case.trained_in(drawn, seconds)) for drawn in orders]
    halved = [_halved(case, drawn, seconds) for drawn in orders] if case.cheap else by_chance
    for method, taken in (("random", by_chance), ("halving", halved)):
        regrets = [case.regret(model) for model in taken if model is not None]
        if regrets:
            found[method] = float(np.mean(regrets))
    return found


def _selected(case: Case, seconds: float) -> str:
    def train(models: Sequence[str]) -> list[Trial]:
        return [Trial(model, case.val.get(model), reason="no val") for model in models]

    return run_selection(case.candidates, seconds, train, limit=case.limit).model


def _halved(case: Case, order: Sequence[str], seconds: float) -> str | None:
    """Successive halving: as many random models on the cheapest rung as the budget allows, by equal factors to a whole training.

    Where not even two can be tried cheaply beside it, whole trainings in that order.
    """
    kinds = sorted(case.cheap, key=lambda kind: cheap_share(kind) or 1.0)
    for number in range(len(order), 1, -1):
        kept, spent = list(order[:number]), 0.0
        for rung, kind in enumerate(kinds):
            kept = kept[: max(1, round(number ** (1 - rung / len(kinds))))]
            spent += (cheap_share(kind) or 1.0) * sum(case.seconds[model] for model in kept)
            kept.sort(key=lambda model, shown=case.cheap[kind]: -shown.get(model, -math.inf))
        if spent + case.seconds[kept[0]] <= seconds + ROUNDING and kept[0] in case.val:
            return kept[0]
    return case.best_on_val(case.trained_in(order, seconds))


def cheap_share(kind: str) -> float | None:
    """Cost of a cheap training as a share of the whole one; None for what is none.

    Raises:
        DataError: It is called one, and its share is not between 0 and 1.

    >>> cheap_share("low:size=0.5"), cheap_share("low:epochs=0.2"), cheap_share("logme")
    (0.25, 0.2, None)
    """
    for prefix, power in (("low:size=", 2), ("low:epochs=", 1)):
        if kind.startswith(prefix):
            text = kind.removeprefix(prefix)
            if not re.fullmatch(r"0?\.\d+|1(\.0+)?", text) or float(text) == 0:
                raise DataError(
                    f"The column {kind} has no share: write {prefix}0.5 for half of it, above 0 and at most 1."
                )
            return float(text) ** power
    return None


def _limit(benchmark: Benchmark) -> float | None:
    """Largest value that val can show, of fractions and of percentages."""
    highest = float(np.nanmax(benchmark.results if benchmark.validation is None else benchmark.validation))
    return next((limit for limit in (1.0, 100.0) if highest <= limit), None)


def _size(name: str) -> float:
    result = imagenet_results().get(name)
    return math.inf if result is None else result.parameters_millions
