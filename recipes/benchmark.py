"""Do priors, scores and cheap trainings foresee fine-tuning? Every published table, replayed: docs/results/benchmark.md.

    python recipes/benchmark.py --out docs/results/benchmark.md
    python recipes/benchmark.py --smoke             # one small table; the same code

It needs the package alone, no data and no network; what recipes/ground_truth.py has trained is replayed as one more table. On
each target of each table nothing is known of that target, nor of related ones, in any table; parameters are fitted anew without
them. What is measured is kept beside the page as a CSV file, one line per table, target and method.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark_page import write_page
from ground_truth_table import known_rows, trained_tables

from crossgraft.compute import limit_threads
from crossgraft.rank.belief import Observation, believe
from crossgraft.rank.known_names import name_in_table, weights_of
from crossgraft.rank.noise_ceiling import noise_ceiling
from crossgraft.rank.published import Benchmark, thesis_datasets
from crossgraft.rank.published.contenders import fitted, held_out_prior
from crossgraft.rank.published.sources import REVERSED
from crossgraft.rank.published.tables import PublishedTable, imagenet_results, published_table, published_tables
from crossgraft.rank.results_store import published_results
from crossgraft.rank.shared_images import NUM_VALIDATION as VAL_IMAGES
from crossgraft.rank.shared_images import shared_share
from crossgraft.records import KnownResult
from crossgraft.statistics import top_1_regret, weighted_kendall

NUM_VALIDATION = VAL_IMAGES["shift"]
"""Validation images of a SHiFT target."""
SMOKE = ("dart",)
SOURCES = "thesis-datasets"
ALL = (*(table.name for table in published_tables()), SOURCES, *trained_tables())
CHEAP = {
    "low:size=0.125": "28 pixels", "low:size=0.286": "64 pixels", "low:size=0.571": "128 pixels",
    "low:size=0.5": "half the pixels", "low:epochs=0.2": "a fifth of the epochs",
}  # fmt: skip


class Line(NamedTuple):
    """One method on one target of one table."""

    table: str
    target: str
    group: str
    method: str
    weighted_kendall: float
    regret: float


class Replay(NamedTuple):
    """One table with the known results that are its own, and the names of its models."""

    benchmark: Benchmark
    rows: list[KnownResult]
    names: list[str]
    origin: str
    metric: str
    table: PublishedTable | None


def main(command_line: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/results/benchmark.md"))
    parser.add_argument("--smoke", action="store_true", help="One small table.")
    parser.add_argument("--page-only", action="store_true", help="Write the page of the numbers that are kept.")
    arguments = parser.parse_args(command_line)
    kept = arguments.out.with_suffix(".csv")
    lines = read_lines(kept) if arguments.page_only else measure_all(SMOKE if arguments.smoke else ALL)
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Line._fields)
        writer.writerows([*line[:4], f"{line.weighted_kendall:.6f}", f"{line.regret:.6f}"] for line in lines)
    arguments.out.write_text(write_page(read_lines(kept)), encoding="utf-8")
    print(f"Page: {arguments.out.name}")


def measure_all(names: Sequence[str]) -> list[Line]:
    """Every method on every target of the tables."""
    lines: list[Line] = []
    with limit_threads(1):
        for name in names:
            lines += measure(replay_of(name))
            print(f"{name}: {len({line.target for line in lines if line.table == name})} targets", flush=True)
    return lines


def read_lines(file: Path) -> list[Line]:
    """What was measured before."""
    with file.open(encoding="utf-8", newline="") as stream:
        _, *rows = csv.reader(stream)
    return [
        Line(table, target, group, method, float(tau), float(regret))
        for table, target, group, method, tau, regret in rows
    ]


def replay_of(name: str) -> Replay:
    """A table by its name; of SHiFT the networks that were tuned on every target."""
    if name in trained_tables():
        table = trained_tables()[name].table
        return Replay(table.benchmark(), known_rows(table), list(table.models), table.origin, table.metric, table)
    if name == SOURCES:
        benchmark, origin, metric, table = thesis_datasets(), "thesis, Table 6.4", "auc", None
    else:
        table = published_table(name)
        benchmark, origin, metric = table.benchmark(), table.origin, table.metric
    mine = [row for row in published_results() if row.origin == origin and row.metric == metric]
    if name == SOURCES:  # the ResNet18 from ImageNet stands in the other table of the thesis
        mine += [row for row in published_results() if row.identity == "resnet/imagenet" and row.origin != origin]
    shared = {row.source if name == SOURCES else row.model: weights_of(row) for row in mine}
    names = [shared[model] if name == SOURCES else name_in_table(name, model) for model in benchmark.models]
    if name == "shift":
        complete = np.flatnonzero(np.isfinite(benchmark.results).all(axis=0))
        return Replay(
            _only(benchmark, complete), mine, [names[i] for i in complete], origin, metric, _kept(table, complete)
        )
    return Replay(benchmark, mine, names, origin, metric, table)


def measure(replay: Replay) -> Iterator[Line]:
    """Every method on every target."""
    benchmark = replay.benchmark
    prior, aggregated = held_out_prior(benchmark), fitted(benchmark)
    for target, (name, group) in enumerate(zip(benchmark.targets, benchmark.groups, strict=True)):
        models = benchmark.known(target)
        truth = benchmark.results[target, models]
        values = {"Static prior": prior[target, models], "Aggregation": aggregated[target, models]}
        values |= {
            column.title: column.values[target, models] for column in benchmark.columns.values() if not column.part
        }
        values |= beliefs(replay, target, models)
        values["ImageNet top-1"] = np.array([imagenet_top1(replay.names[model]) for model in models])
        for method, value in values.items():
            known = np.isfinite(value)
            if known.sum() > 2 and np.ptp(value[known]) > 0:
                tau = weighted_kendall(value[known], truth[known])
                yield Line(benchmark.name, name, group, method, tau, top_1_regret(value[known], truth[known]))
        if benchmark.standard_deviations is not None:
            ceiling = noise_ceiling(truth, benchmark.standard_deviations[target, models])
            yield Line(benchmark.name, name, group, "Noise ceiling", ceiling, float("nan"))


def imagenet_top1(name: str) -> float:
    """In percent; NaN for a network that neither timm nor torchvision publishes."""
    result = imagenet_results().get(name)
    return float("nan") if result is None else result.top1_percent


def beliefs(replay: Replay, target: int, models: np.ndarray) -> dict[str, np.ndarray]:
    """The belief with and without its own table, and after each sort of evidence."""
    name = replay.benchmark.targets[target]
    names = [replay.names[model] for model in models]
    own = [row.model_copy(update={"origin": "replay"}) for row in replay.rows]
    cold = believe(names, target=name, metric=replay.metric, without=[replay.origin])
    known = believe(names, known=own, target=name, metric=replay.metric)
    found = {"Belief without this table": cold.mean, "Belief": known.mean}
    scores = dict(_scores(replay))
    if scores:
        found["Belief + scores"] = known.after(_scored(names, scores, target, models)).mean
    table = replay.table
    for kind, pixels in CHEAP.items() if table else ():
        if kind in table.kinds:
            seen = cheap_trainings(replay, kind, target, models, names)
            found[f"Belief + {pixels}"] = known.after(seen).mean
            found[f"Belief without this table + {pixels}"] = cold.after(seen).mean
    if table and table.validation is not None:
        accuracy = table.validation[target, models]
        errors = own_share(replay, target) * val_errors(table, target, models)
        seen = [Observation(*each) for each in zip(names, ["full"] * len(names), accuracy, errors, strict=True)]
        found["Validation alone"] = accuracy
        found["Belief + validation"] = known.after(seen).mean
    return found


def cheap_trainings(
    replay: Replay, kind: str, target: int, models: np.ndarray, names: Sequence[str]
) -> list[Observation]:
    """One kind of cheap training, with the errors that a selection would know: of few seeds, or of few val images."""
    table = replay.table
    values = table.kinds[kind][target, models]
    if table.name in trained_tables():
        errors = own_share(replay, target) * val_errors(table, target, models)
    else:
        errors = table.kind_deviations[kind][target, models] / np.sqrt(table.num_seeds)
    rows = zip(names, values, np.nan_to_num(errors), strict=True)
    return [Observation(name, kind, float(value), float(error)) for name, value, error in rows if np.isfinite(value)]


def own_share(replay: Replay, target: int) -> float:
    """Share of a standard error on val that networks do not have in common."""
    return float(np.sqrt(1 - shared_share(replay.benchmark.groups[target])))


def val_errors(table: PublishedTable, target: int, models: np.ndarray) -> np.ndarray:
    """Standard errors of values on val, from the number of its images."""
    if table.name in trained_tables():
        return trained_tables()[table.name].val_errors[target, models]
    accuracy = table.validation[target, models]
    return np.sqrt(np.maximum(accuracy * (1 - accuracy), 0.25 / NUM_VALIDATION) / NUM_VALIDATION)


def _scored(names: Sequence[str], kinds: dict[str, np.ndarray], target: int, models: np.ndarray) -> list[Observation]:
    return [
        Observation(name, kind, float(value), None)
        for kind, values in kinds.items()
        for name, value in zip(names, values[target, models], strict=True)
        if np.isfinite(value)
    ]


def _scores(replay: Replay) -> Iterator[tuple[str, np.ndarray]]:
    """Whole scores as they are, none turned round after the results were known."""
    for name, column in replay.benchmark.columns.items():
        if column.part or column.unusable or name == "ours" or name.startswith("low:"):
            continue
        turned = replay.benchmark.name == "thesis-architectures" and name in REVERSED
        yield f"score:{name}", -column.values if turned else column.values


def _only(benchmark: Benchmark, columns: np.ndarray) -> Benchmark:
    return Benchmark(
        name=benchmark.name,
        title=benchmark.title,
        result=benchmark.result,
        models=[benchmark.models[i] for i in columns],
        targets=benchmark.targets,
        groups=benchmark.groups,
        results=benchmark.results[:, columns],
    )


def _kept(table: PublishedTable | None, columns: np.ndarray) -> PublishedTable | None:
    if table is None or table.validation is None:
        return table
    kept = {"results": table.results[:, columns], "validation": table.validation[:, columns], "seconds": None}
    return replace(table, models=tuple(table.models[i] for i in columns), **kept)


if __name__ == "__main__":
    main()
