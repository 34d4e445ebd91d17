"""What `crossgraft select` would have handed over on published tables, for several budgets: a part of docs/results/benchmark.md.

    python recipes/benchmark_select.py --out docs/results/selection.md
    python recipes/benchmark_select.py --smoke      # two targets; the same code

The scheduler is that of ``select``; a table stands in place of trainings, so that all of it takes minutes. Nothing of the
target, nor of related ones, is known beforehand. Nothing is fitted to these tables beyond what ``select`` has for everybody.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark import NUM_VALIDATION, Replay, replay_of
from ground_truth_table import trained_tables

from crossgraft.compute import limit_threads
from crossgraft.rank.belief import Belief, believe
from crossgraft.rank.published.tables import imagenet_results
from crossgraft.seeding import generator
from crossgraft.selection import Action, TableTrials, run_selection

TABLES = ("medmnistplus_auc", "medmnistplus_accuracy", "shift", *trained_tables())
SIZES = {"low:size=0.125": 28 / 224, "low:size=0.286": 64 / 224, "low:size=0.571": 128 / 224}
PROBE = "score:linear_probe"
BUDGETS = (0.03, 0.10, 0.25, 0.50)
NUM_RUNS = 2
"""Drawn runs of every network on MedMNIST+, whose table has means and standard deviations of three seeds."""
NUM_ORDERS = 50
"""Random orders of models of the baselines."""
METHODS = (
    "select",
    "select, without this table",
    "prior alone",
    "largest ImageNet model",
    "halving without prior",
    "linear probe",
    "random",
)


HEAD = (
    "# What a selection within a budget hands over, on published tables\n\n"
    "Written by `recipes/benchmark_select.py`, which keeps the numbers beside this page as a CSV file. What the command does: "
    "[which model, in one hour?](../how-to/which-model-in-one-hour.md)"
)


class Regret(NamedTuple):
    """One method on one target within one budget; a mean over drawn runs and orders, in points."""

    table: str
    target: str
    group: str
    method: str
    budget: float
    regret_points: float
    cost_share: float


@dataclass(frozen=True)
class Case:
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
    if not arguments.page_only:
        write_rows(kept, list(measure_all(smoke=arguments.smoke)))
    arguments.out.write_text(f"{HEAD}\n\n{select_section(read_rows(kept))}", encoding="utf-8")
    print(f"Page: {arguments.out.name}")


def measure_all(*, smoke: bool = False) -> Iterator[Regret]:
    """Every method on every target within every budget."""
    with limit_threads(1):
        for table in TABLES[:1] if smoke else TABLES:
            replay = replay_of(table)
            targets = range(2) if smoke else range(len(replay.benchmark.targets))
            for target in targets:
                yield from measure(replay, target)
                print(f"{table}: {replay.benchmark.targets[target]}", flush=True)


def measure(replay: Replay, target: int) -> Iterator[Regret]:
    """Every method on one target within every budget; what one training costs more than is left out."""
    benchmark = replay.benchmark
    models = benchmark.known(target)
    names = [replay.names[model] for model in models]
    own = [row.model_copy(update={"origin": "replay"}) for row in replay.rows]
    name = benchmark.targets[target]
    priors = {
        "select": believe(names, known=own, target=name, metric=replay.metric),
        "select, without this table": believe(names, target=name, metric=replay.metric, without=[replay.origin]),
    }
    cases = [
        case_of(replay, target, models, names, run) for run in range(NUM_RUNS if replay.table.validation is None else 1)
    ]
    for budget in BUDGETS:
        found: dict[str, list[tuple[float, float]]] = {}
        for run, case in enumerate(cases):
            seconds = budget * case.seconds
            if seconds < min(case.costs.values()):
                continue
            for method, prior in priors.items():
                found.setdefault(method, []).append(selected(case, prior, seconds))
            for method, pairs in baselines(replay, target, models, case, priors["select"], seconds, run).items():
                found.setdefault(method, []).extend(pairs)
        for method, pairs in found.items():
            regret, cost = np.mean(pairs, axis=0)
            yield Regret(benchmark.name, name, benchmark.groups[target], method, budget, float(regret), float(cost))


def case_of(replay: Replay, target: int, models: np.ndarray, names: list[str], run: int) -> Case:
    """What one run of every network shows: on SHiFT accuracy on val, on MedMNIST+ a draw around the mean of the seeds.

    On the trained table it is the metric on val, of cheap trainings too, at the CPU seconds that they took.
    """
    table = replay.table
    truth = 100 * table.results[target, models]
    if table.name in trained_tables():
        return Case(names, truth, trained_tables()[table.name].trials(target, models, names))
    if table.validation is not None:
        accuracy = table.validation[target, models]
        seconds = dict(zip(names, seconds_of(replay, target, models), strict=True))
        error = float(np.sqrt(np.mean(accuracy * (1 - accuracy)) / NUM_VALIDATION))
        values = {Action(name, "full"): float(value) for name, value in zip(names, accuracy, strict=True)}
        return Case(names, truth, TableTrials({Action(n, "full"): seconds[n] for n in names}, values, {"full": error}))
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


def selected(case: Case, prior: Belief, seconds: float) -> tuple[float, float]:
    """Regret of ``select``, and the share of all that it booked."""
    found = run_selection(case.trials, prior, seconds)
    return case.regret(found.model), found.state.booked / case.seconds


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
    best = max(tried, key=lambda name: case.trials.values[Action(name, "full")])
    return case.regret(best), spent / case.seconds


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


def write_rows(file: Path, rows: Sequence[Regret]) -> None:
    """Keep what was measured."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(Regret._fields)
        writer.writerows([*row[:5], f"{row.regret_points:.4f}", f"{row.cost_share:.4f}"] for row in rows)


def read_rows(file: Path) -> list[Regret]:
    """What was measured before."""
    with file.open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return [Regret(*row[:4], *map(float, row[4:])) for row in rows]


def select_section(rows: Sequence[Regret]) -> str:
    """The section as Markdown: mean and worst regret of every method within every budget, a table per published table."""
    parts = [
        "## Selecting within a budget",
        "Mean (worst) regret in points over the targets, of the model that is handed over; the mean is one of targets, "
        "each a mean over drawn runs and random orders. The budget is a share of the cost of tuning all models: of pixels "
        "on MedMNIST+, of published seconds on SHiFT. `select` is the scheduler of `crossgraft select` with the table in "
        "place of trainings; it knows the other targets of the table, as a user's own results, or, *without this table*, "
        "other publications only. Evidence on MedMNIST+ is one run drawn around the published mean with the published "
        "standard deviation, the truth the mean; on SHiFT val (200 images) is the evidence and test the truth. No method "
        "sees the truth. A dash: the budget is below one training. `halving` and `random` begin with models in random "
        "order.",
    ]
    if trained_tables().keys() & {row.table for row in rows}:
        parts.append("On the tables that were trained here val is the evidence, at the CPU seconds that it took.")
    for table in dict.fromkeys(row.table for row in rows):
        some = [row for row in rows if row.table == table]
        number = len({row.target for row in some})
        head = [f"| {table}, {number} targets | " + " | ".join(f"{100 * budget:.0f} %" for budget in BUDGETS) + " |"]
        head.append("|---" * (1 + len(BUDGETS)) + "|")
        lines = [
            f"| {method} | " + " | ".join(_cell(some, method, budget) for budget in BUDGETS) + " |"
            for method in METHODS
            if any(row.method == method for row in some)
        ]
        parts += ["\n".join([*head, *lines]), _in_words(some)]
    if missing := [table for table in TABLES if table not in {row.table for row in rows}]:
        parts.append(f"Not measured yet: {', '.join(missing)}.")
    return "\n\n".join(parts) + "\n"


def _in_words(rows: Sequence[Regret]) -> str:
    """Who has the least mean regret within each budget, and whether that is `select`."""
    said = []
    for budget in BUDGETS:
        means = {
            method: float(np.mean(found))
            for method in METHODS
            if (found := [row.regret_points for row in rows if row.method == method and row.budget == budget])
        }
        if means:
            least = min(means, key=lambda method: means[method])
            said.append(f"{100 * budget:.0f} %: {least} ({means[least]:.2f}; select {means['select']:.2f})")
    return f"Least mean regret: {'; '.join(said)}."


def _cell(rows: Sequence[Regret], method: str, budget: float) -> str:
    found = [row.regret_points for row in rows if row.method == method and row.budget == budget]
    return f"{np.mean(found):.2f} ({max(found):.2f})" if found else "—"


if __name__ == "__main__":
    main()
