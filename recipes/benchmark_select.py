"""What `crossgraft select` would have handed over on published tables, for several budgets: a part of docs/results/benchmark.md.

    python recipes/benchmark_select.py --out docs/results/selection.md
    python recipes/benchmark_select.py --smoke      # two targets; the same code

The scheduler is that of ``select``; a table stands in place of trainings, so that all of it takes minutes. Nothing of the
target, nor of related ones, is known beforehand. No constant is fitted to these tables, but the model of
``select`` was changed after replays of them had been seen; the page says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark import NUM_VALIDATION, Replay, replay_of
from benchmark_select_noise import regret_of_the_truly_best, result_errors
from benchmark_select_page import (
    ALL_TRAINED,
    BUDGETS,
    HEAD,
    TABLES,
    TRULY_BEST,
    Regret,
    Reliability,
    read_rows,
    select_section,
    write_rows,
)
from ground_truth_table import trained_tables

from crossgraft.compute import limit_threads
from crossgraft.rank.belief import Belief, believe
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.rank.shared_images import shared_share
from crossgraft.seeding import generator
from crossgraft.selection import Action, Selected, TableTrials, run_selection

SIZES = {"low:size=0.125": 28 / 224, "low:size=0.286": 64 / 224, "low:size=0.571": 128 / 224}
PROBE = "score:linear_probe"
NUM_RUNS = 2
"""Drawn runs of every network on MedMNIST+, whose table has means and standard deviations of three seeds."""
NUM_ORDERS = 50
"""Random orders of models of the baselines."""
BINS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35, 1.0)
"""Ends of the bins of chances; what is handed over leads, so that few are above a half."""


class Chance(NamedTuple):
    """Of one model that was not handed over: the chance that it is better, and whether it is."""

    table: str
    is_tried: bool
    chance: float
    is_better: bool


class Case(NamedTuple):
    """One target with one run of every network.

    Attributes:
        names: Networks.
        truth: What counts, in points.
        trials: What the run shows.
        seconds: Budget of 100 %.
    """

    names: list[str]
    truth: np.ndarray
    trials: TableTrials

    @property
    def seconds(self) -> float:
        """Cost of tuning all."""
        return self.trials.plan().seconds_of_all

    @property
    def costs(self) -> dict[str, float]:
        """Cost of tuning each."""
        return {name: self.trials.seconds[Action(name, "full")] for name in self.names}

    def best_run(self, names: Sequence[str]) -> str:
        """The best of fully trained models on what their runs show."""
        return max(names, key=lambda name: self.trials.values.get(Action(name, "full"), -np.inf))

    def regret(self, name: str) -> float:
        """Points below the best."""
        return float(self.truth.max() - self.truth[self.names.index(name)])


def main(command_line: Sequence[str] | None = None) -> None:
    """Measure, keep the numbers and print the section."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/selection.md"))
    parser.add_argument("--smoke", action="store_true", help="Two targets of one table.")
    parser.add_argument("--page-only", action="store_true", help="Write the page of the numbers that are kept.")
    arguments = parser.parse_args(command_line)
    kept = arguments.out.with_suffix(".csv")
    of_chances = kept.with_name(f"{kept.stem}_chances.csv")
    if not arguments.page_only:
        chances: list[Chance] = []
        write_rows(kept, Regret, measure_all(chances, smoke=arguments.smoke))
        write_rows(of_chances, Reliability, reliability(chances))
    section = select_section(read_rows(kept, Regret), read_rows(of_chances, Reliability))
    arguments.out.write_text(f"{HEAD}\n\n{section}", encoding="utf-8")
    print(f"Page: {arguments.out.name}")


def measure_all(chances: list[Chance], *, smoke: bool = False) -> Iterator[Regret]:
    """Every method on every target within every budget; chances of models that were not handed over are added to the list."""
    with limit_threads(1):
        for table in TABLES[:1] if smoke else TABLES:
            replay = replay_of(table)
            targets = range(2) if smoke else range(len(replay.benchmark.targets))
            for target in targets:
                yield from measure(replay, target, chances)
                print(f"{table}: {replay.benchmark.targets[target]}", flush=True)


def measure(replay: Replay, target: int, chances: list[Chance]) -> Iterator[Regret]:
    """Every method on one target within every budget; what one training costs more than is left out."""
    benchmark = replay.benchmark
    models = benchmark.known(target)
    names = [replay.names[model] for model in models]
    own = [row.model_copy(update={"origin": "replay"}) for row in replay.rows]
    name, group = benchmark.targets[target], benchmark.groups[target]
    priors = {
        "select": believe(names, known=own, target=name, metric=replay.metric),
        "select, without this table": believe(names, target=name, metric=replay.metric, without=[replay.origin]),
    }
    cases = [
        case_of(replay, target, models, names, run) for run in range(NUM_RUNS if replay.table.validation is None else 1)
    ]
    regrets = [case.regret(case.best_run(case.names)) for case in cases]
    yield Regret(benchmark.name, name, group, ALL_TRAINED, 1.0, float(np.mean(regrets)), 1.0)
    errors = result_errors(replay, target, models)
    if errors is not None:
        least = regret_of_the_truly_best(cases[0].truth, 100 * errors)
        yield Regret(benchmark.name, name, group, TRULY_BEST, 1.0, least, 1.0)
    for budget in BUDGETS:
        found: dict[str, list[tuple[float, float]]] = {}
        for run, case in enumerate(cases):
            seconds = budget * case.seconds
            if seconds < min(case.costs.values()):
                continue
            for method, prior in priors.items():
                done = run_selection(case.trials, prior, seconds)
                found.setdefault(method, []).append((case.regret(done.model), done.state.booked / case.seconds))
                chances += chances_of(benchmark.name, case, done)
            for method, pairs in baselines(replay, target, models, case, priors["select"], seconds, run).items():
                found.setdefault(method, []).extend(pairs)
        for method, pairs in found.items():
            regret, cost = np.mean(pairs, axis=0)
            yield Regret(benchmark.name, name, group, method, budget, float(regret), float(cost))


def chances_of(table: str, case: Case, done: Selected) -> Iterator[Chance]:
    """What ``select`` says of every model that it does not hand over, and what is true."""
    taken = case.truth[case.names.index(done.model)]
    for name, truth in zip(case.names, case.truth, strict=True):
        if name != done.model and truth != taken:
            chance = done.belief.probability_better(name, done.model)
            yield Chance(table, bool(done.state.done(name)), chance, bool(truth > taken))


def reliability(chances: Sequence[Chance]) -> Iterator[Reliability]:
    """Chances in bins, for each table, of models that were tried and of those that were not."""
    for table in dict.fromkeys(each.table for each in chances):
        for is_tried in (True, False):
            for least, below in pairwise(BINS):
                some = [
                    each
                    for each in chances
                    if (each.table, each.is_tried) == (table, is_tried)
                    and (least <= each.chance < below or each.chance == below == 1)
                ]
                if some:
                    mean, share = np.mean([(each.chance, each.is_better) for each in some], axis=0)
                    models = "tried" if is_tried else "not tried"
                    yield Reliability(table, models, least, below, len(some), float(mean), float(share))


def case_of(replay: Replay, target: int, models: np.ndarray, names: list[str], run: int) -> Case:
    """What one run of every network shows: on SHiFT accuracy on val, on MedMNIST+ a draw around the mean of the seeds.

    On the trained table it is the metric on val, of cheap trainings too, at the CPU seconds that they took.
    """
    table = replay.table
    truth = 100 * table.results[target, models]
    shared = shared_share(replay.benchmark.groups[target])
    if table.name in trained_tables():
        return Case(names, truth, trained_tables()[table.name].trials(target, models, names, shared_error=shared))
    if table.validation is not None:
        accuracy = table.validation[target, models]
        seconds = dict(zip(names, seconds_of(replay, target, models), strict=True))
        error = float(np.sqrt(np.mean(accuracy * (1 - accuracy)) / NUM_VALIDATION))
        values = {Action(name, "full"): float(value) for name, value in zip(names, accuracy, strict=True)}
        costs = {Action(name, "full"): seconds[name] for name in names}
        return Case(names, truth, TableTrials(costs, values, {"full": error}, shared_error=shared))
    cells, values, errors = {}, {}, {}
    kinds = {kind: (table.kinds[kind], table.kind_deviations[kind], share**2) for kind, share in SIZES.items()}
    kinds["full"] = (table.results, table.standard_deviations, 1.0)
    for kind, (means, deviations, cost) in kinds.items():
        rng = generator(run, "run", replay.benchmark.name, target, kind)
        drawn = means[target, models] + deviations[target, models] * rng.standard_normal(len(models))
        errors[kind] = float(np.sqrt(np.nanmean(deviations[target, models] ** 2)))
        for name, value in zip(names, drawn, strict=True):
            cells[Action(name, kind)] = cost
            if np.isfinite(value):
                values[Action(name, kind)] = float(value)
    return Case(names, truth, TableTrials(cells, values, errors))


def seconds_of(replay: Replay, target: int, models: np.ndarray) -> np.ndarray:
    """Published seconds of fine-tuning; the median of the target where one is not known."""
    seconds = _shift_seconds()[target][[_shift_models().index(replay.table.models[model]) for model in models]]
    return np.where(np.isfinite(seconds), seconds, np.nanmedian(seconds))


@cache
def _shift_seconds() -> np.ndarray:
    from crossgraft.rank.published.tables import published_table

    return published_table("shift").seconds


@cache
def _shift_models() -> list[str]:
    from crossgraft.rank.published.tables import published_table

    return list(published_table("shift").models)


def baselines(
    replay: Replay, target: int, models: np.ndarray, case: Case, prior: Belief, seconds: float, run: int
) -> Mapping[str, list[tuple[float, float]]]:
    """Regrets and costs of the ways that need no scheduler; each trains only what fits into the budget."""
    costs = case.costs
    fitting = [name for name in case.names if costs[name] <= seconds]

    def one(values: Mapping[str, float]) -> list[tuple[float, float]]:
        known = [name for name in fitting if np.isfinite(values.get(name, np.nan))]
        best = max(known, key=lambda name: values[name]) if known else None
        return [] if best is None else [(case.regret(best), costs[best] / case.seconds)]

    found = {"prior alone": one(dict(zip(prior.models, prior.mean, strict=True)))}
    found["largest ImageNet model"] = one(imagenet_sizes(replay.table.name, fitting))
    probe = replay.table.kinds.get(PROBE)
    if probe is not None:
        found["linear probe"] = one(dict(zip(case.names, probe[target, models], strict=True)))
    rng = generator(run, "orders", target)
    orders = [list(rng.permutation(case.names)) for _ in range(NUM_ORDERS)]
    found["random"] = [searched(case, order, seconds) for order in orders]
    if any(action.kind != "full" for action in case.trials.seconds):
        found["halving without prior"] = [halved(case, order, seconds) for order in orders]
    return {method: pairs for method, pairs in found.items() if pairs}


def imagenet_sizes(table: str, names: Sequence[str]) -> Mapping[str, float]:
    """Parameters of the networks that were pretrained on ImageNet."""
    if table in trained_tables():
        return trained_tables()[table].imagenet_sizes
    known = imagenet_results()
    return {name: known[name].parameters_millions for name in names if name in known}


def searched(case: Case, order: Sequence[str], seconds: float) -> tuple[float, float]:
    """Train models in a random order as long as the budget lasts, and take the best on the evidence."""
    spent, tried = 0.0, []
    for name in order:
        if spent + case.costs[name] <= seconds:
            spent += case.costs[name]
            tried.append(name)
    return case.regret(case.best_run(tried)), spent / case.seconds


def halved(case: Case, order: Sequence[str], seconds: float) -> tuple[float, float]:
    """Successive halving from as many random models as the budget allows, through all resolutions to one whole training."""
    kinds = sorted(
        {action.kind for action in case.trials.seconds}, key=lambda kind: case.trials.seconds[Action(order[0], kind)]
    )
    for number in range(len(order), 0, -1):
        sizes = [max(1, round(number ** (1 - rung / (len(kinds) - 1)))) for rung in range(len(kinds))]
        kept, spent = list(order[:number]), 0.0
        for kind, size in zip(kinds, sizes, strict=True):
            kept = kept[:size]
            spent += sum(case.trials.seconds[Action(name, kind)] for name in kept)
            kept.sort(key=lambda name: -case.trials.values.get(Action(name, kind), -np.inf))
        if spent <= seconds:
            return case.regret(kept[0]), spent / case.seconds
    return case.regret(order[0]), case.costs[order[0]] / case.seconds


if __name__ == "__main__":
    main()
