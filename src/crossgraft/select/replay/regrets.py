"""``select`` on a table of results: every whole training is looked up, and simpler ways choose beside it.

For each target, it and its relatives are unknown; the other targets of the table are results of one's own, unless the start is
cold. Choices are made by val, judged by the results: regret is the best result minus that of the model that is handed over.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from crossgraft.errors import DataError, UsageError
from crossgraft.rank.expected_order import ExpectedOrder, expected_order, imagenet_top1, publication_of
from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.contenders import held_out_prior
from crossgraft.rank.published.evaluate import MIN_GROUPS, mean_over_targets
from crossgraft.rank.published.record import MeanRecord
from crossgraft.rank.published.tables import imagenet_results, published_table
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import full_name, name_in_table, published_results
from crossgraft.records.base import Reference
from crossgraft.result import Result
from crossgraft.seeding import generator
from crossgraft.select.planning import Budget
from crossgraft.select.replay.page import conclusion_in_words
from crossgraft.select.replay.record import OrderRow, ReplayRecord, ReplayRow
from crossgraft.select.rule import Candidate, Trial, in_order, run_selection
from crossgraft.statistics import LEAST_REGRETS, weighted_kendall

if TYPE_CHECKING:
    import pandas as pd


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


def case_of(benchmark: Benchmark, target: int, models: np.ndarray, names: Sequence[str], expected: ExpectedOrder) -> Case:
    """Costs that a table lacks are the median of the target, or all 1."""
    truth = dict(zip(names, benchmark.results[target, models].tolist(), strict=True))
    measured = truth if benchmark.validation is None else dict(zip(names, benchmark.validation[target, models], strict=True))
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
    regret_of = {method: case.regret(model) for method, model in chosen.items() if model is not None}
    names = np.array(sorted(case.seconds))
    orders = [rng.permutation(names).tolist() for _ in range(NUM_ORDERS)]
    by_chance = [case.best_on_val(case.trained_in(drawn, seconds)) for drawn in orders]
    halved = [_halved(case, drawn, seconds) for drawn in orders] if case.cheap else by_chance
    for method, taken in (("random", by_chance), ("halving", halved)):
        regrets = [case.regret(model) for model in taken if model is not None]
        if regrets:
            regret_of[method] = float(np.mean(regrets))
    return regret_of


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
                raise DataError(f"The column {kind} has no share: write {prefix}0.5 for half of it, above 0 and at most 1.")
            return float(text) ** power
    return None


def _limit(benchmark: Benchmark) -> float | None:
    """Largest value that val can show, of fractions and of percentages."""
    highest = float(np.nanmax(benchmark.results if benchmark.validation is None else benchmark.validation))
    return next((limit for limit in (1.0, 100.0) if highest <= limit), None)


def _size(name: str) -> float:
    result = imagenet_results().get(name)
    return math.inf if result is None else result.parameters_millions


_ORDERS = ("prior", "static_prior", "imagenet", "static_prior, where ImageNet knows")
_REFERENCES = (
    Reference(key="weighted Kendall", text="Vigna, A weighted correlation index for rankings with ties, WWW 2015."),
    Reference(key="static prior", text="Singh, Hess and Vanschoren, arXiv 2510.06448."),
    Reference(key="successive halving", text="Jamieson and Talwalkar, AISTATS 2016."),
)


def replay(
    benchmark: Benchmark,
    budgets: Sequence[Budget],
    *,
    known: Sequence[KnownResult] = (),
    is_cold: bool = False,
    metric: str | None = None,
    without: Sequence[str] = (),
    names: Sequence[str] = (),
    seed: int = 0,
) -> ReplayRecord:
    """What ``select`` and simpler ways hand over on every target of a table.

    Args:
        benchmark: The table.
        budgets: Each a share of the cost of all models of a target, or a time where the table has seconds.
        known: Further results of one's own.
        is_cold: Whether the other targets of the table are unknown, too.
        metric: Where a publication has several metrics, the one that counts.
        without: Publications that are not known, that of a published table itself above all.
        names: Names of timm, torchvision or the hub of the models; none: those of the table.
        seed: Random seed of the orders of ``random`` and ``halving``.

    Raises:
        UsageError: A budget is a time, and the table has no seconds; or it is below one training on every target.
        DataError: Two models of the table are the same weights, or a column of cheap trainings has no share.

    Cost:
        About three seconds of one core for 300 models × 20 targets and three budgets.
    """
    timed = next((budget for budget in budgets if budget.share is None), None)
    if benchmark.seconds is None and timed is not None:
        raise UsageError(
            f"--budget {timed.text}: {benchmark.name} has no column seconds, so that a budget is a share of training all "
            "models: --budget 25%."
        )
    called = [full_name(name) for name in names or benchmark.models]
    _refuse_twins(benchmark, called)
    own = [*known, *([] if is_cold else known_rows(benchmark, called))]
    orders: dict[str, list[float]] = {name: [] for name in _ORDERS}
    static = held_out_prior(benchmark)
    regrets: dict[tuple[str, str], dict[int, float]] = {}
    for target in range(len(benchmark.targets)):
        models = benchmark.known(target)
        some = [called[model] for model in models]
        expected = expected_order(
            some, own=own, target=benchmark.targets[target], group=benchmark.groups[target], metric=metric, without=without
        )
        truth = benchmark.results[target, models]
        top1, of_static = imagenet_top1(some), static[target, models]
        for name, values in (("prior", expected.values), ("static_prior", of_static), ("imagenet", top1)):
            orders[name].append(_agreement(values, truth))
        orders["static_prior, where ImageNet knows"].append(_agreement(np.where(np.isnan(top1), np.nan, of_static), truth))
        case = case_of(benchmark, target, models, some, expected)
        for budget in budgets:
            seconds = budget.seconds(sum(case.seconds.values()))
            if seconds < min(case.seconds.values()) - ROUNDING:
                continue
            for method, regret in regrets_of(case, seconds, generator(seed, "orders", target)).items():
                regrets.setdefault((method, budget.text), {})[target] = regret
    if not regrets:
        raise UsageError(f"--budget {budgets[0].text} is below one training on every target of {benchmark.name}.")
    record = ReplayRecord(
        name=benchmark.name,
        title=benchmark.title,
        num_models=len(benchmark.models),
        targets=list(benchmark.targets),
        target_groups=list(benchmark.groups),
        budgets=[budget.text for budget in budgets],
        is_cold=is_cold,
        has_val=benchmark.validation is not None,
        has_seconds=benchmark.seconds is not None,
        rows=list(_rows(benchmark, budgets, regrets)),
        orders=list(_order_rows(benchmark, orders)),
        notes=_notes(benchmark, regrets, called),
        references=list(_REFERENCES),
    )
    return record.model_copy(update={"conclusion": conclusion_in_words(record)})


def replay_published(
    name: str, budgets: Sequence[Budget], *, known: Sequence[KnownResult] = (), is_cold: bool = False, seed: int = 0
) -> ReplayRecord:
    """``replay`` of a published table, whose whole publication is unknown but for the table itself."""
    table = published_table(name)
    publication = publication_of(table.origin)
    return replay(
        table,
        budgets,
        known=known,
        is_cold=is_cold,
        metric=table.metric,
        without=sorted({row.origin for row in published_results() if publication_of(row.origin) == publication}),
        names=[name_in_table(name, model) for model in table.models],
        seed=seed,
    )


def known_rows(benchmark: Benchmark, names: Sequence[str] = ()) -> list[KnownResult]:
    """A table as results of one's own."""
    return [
        KnownResult(
            model=(names or benchmark.models)[model],
            weights="",
            source="",
            target=benchmark.targets[target],
            target_group=benchmark.groups[target],
            protocol=benchmark.name,
            metric=benchmark.result,
            value=float(benchmark.results[target, model]),
            origin=benchmark.name,
        )
        for target, model in np.argwhere(np.isfinite(benchmark.results)).tolist()
    ]


@dataclass(frozen=True, eq=False, repr=False)
class ReplayResult(Result[ReplayRecord]):
    """A table that was replayed: ``record`` holds every number."""

    def summary(self) -> str:
        """What the replay supports."""
        return self.record.conclusion

    def to_frame(self) -> pd.DataFrame:
        """One row per method and budget."""
        import pandas as pd

        return pd.DataFrame([row.model_dump(exclude={"beyond_select"}) for row in self.record.rows])


def _refuse_twins(benchmark: Benchmark, names: Sequence[str]) -> None:
    of_weights: dict[str, str] = {}
    for model, name in zip(benchmark.models, names, strict=True):
        if of_weights.setdefault(name, model) != model:
            raise DataError(
                f"{benchmark.name}: the models {of_weights[name]} and {model} are the same weights, {name}. Keep one of them."
            )


def _rows(
    benchmark: Benchmark, budgets: Sequence[Budget], regrets_of_method: Mapping[tuple[str, str], Mapping[int, float]]
) -> Iterator[ReplayRow]:
    for budget in budgets:
        of_select = regrets_of_method.get(("select", budget.text), {})
        for method in METHODS:
            regrets = regrets_of_method.get((method, budget.text), {})
            mean = _over_targets(benchmark, regrets, lowest=0.0, least=LEAST_REGRETS)
            both = {target: regrets[target] - of_select[target] for target in regrets if target in of_select}
            yield ReplayRow(
                method=method,
                budget=budget.text,
                mean_regret=mean.value,
                low=mean.low,
                high=mean.high,
                no_interval_reason=mean.no_interval_reason,
                worst_regret=max(regrets.values(), default=None),
                num_targets=mean.num_targets,
                beyond_select=None if method == "select" or not both else _over_targets(benchmark, both),
            )


def _order_rows(benchmark: Benchmark, orders: Mapping[str, Sequence[float]]) -> Iterator[OrderRow]:
    """Each order, and what it gains over the static prior of the networks that it knows."""
    for name in ("prior", "static_prior", "imagenet"):
        values = np.array(orders[name])
        beside = np.array(orders["static_prior" if name == "prior" else "static_prior, where ImageNet knows"])
        yield OrderRow(
            order=name,
            weighted_kendall=mean_over_targets(values, benchmark.groups, limits=(-1.0, 1.0)),
            beyond_static_prior=None
            if name == "static_prior"
            else mean_over_targets(values - beside, benchmark.groups, limits=(-2.0, 2.0)),
        )


def _over_targets(
    benchmark: Benchmark, values: Mapping[int, float], *, lowest: float = -math.inf, least: int = MIN_GROUPS
) -> MeanRecord:
    every = np.array([values.get(target, np.nan) for target in range(len(benchmark.targets))])
    return mean_over_targets(every, benchmark.groups, limits=(lowest, math.inf), least=least)


def _agreement(values: np.ndarray, truth: np.ndarray) -> float:
    """Weighted Kendall over the models that have a value; NaN where that says nothing."""
    known = np.isfinite(values)
    if known.sum() < 2 or np.ptp(values[known]) == 0:
        return math.nan
    return weighted_kendall(values[known], truth[known])


def _notes(
    benchmark: Benchmark, regrets_of_method: Mapping[tuple[str, str], Mapping[int, float]], names: Sequence[str]
) -> list[str]:
    notes: list[str] = []
    if benchmark.validation is None:
        notes.append("There is no column val: choices are made by the results themselves, so that all regrets are too small.")
    if benchmark.seconds is None:
        notes.append("There is no column seconds: every training counts as costing the same.")
    if not any(cheap_share(kind) for kind in benchmark.columns):
        notes.append("There are no cheap trainings (columns such as low:size=0.5), so that halving is random.")
    if not any(method == "imagenet" for method, _ in regrets_of_method):
        notes.append("None of the models has a published ImageNet result by its name here.")
    elif (unknown := sum(name not in imagenet_results() for name in names)) > 0:
        notes.append(f"{unknown} of {len(names)} models have no published ImageNet result by their names here.")
    return notes
