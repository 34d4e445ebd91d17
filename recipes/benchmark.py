"""What foresees fine-tuning? Every published table, replayed: docs/results/benchmark.csv.

    python recipes/benchmark.py          # all tables; a few minutes
    python recipes/benchmark.py dart     # prints the lines of these tables, and writes nothing

It needs the package alone, no data and no network; the tables trained here (docs/results/ground_truth) are replayed as well, but
for their noise ceilings, of single trainings, which stay. On each target of each table nothing is known of that target, nor of
related ones, in any table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from tables import read_csv

from crossgraft.compute import limit_threads
from crossgraft.rank.expected_order import expected_order, imagenet_top1, publication_of
from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.rank.published import Benchmark, thesis_datasets
from crossgraft.rank.published.benchmark import read_benchmark_table
from crossgraft.rank.published.contenders import fitted, held_out_prior
from crossgraft.rank.published.tables import KIND_TITLES, published_table, published_tables
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import name_in_table, one_metric, published_results
from crossgraft.select.replay import known_rows
from crossgraft.statistics import top_1_regret, weighted_kendall

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
SOURCES, CEILING = "thesis-datasets", "Noise ceiling"
TRAINED = {f"trained_{metric}": (RESULTS / "ground_truth" / f"table_{metric}.csv", metric) for metric in ("auc", "accuracy")}


class Replay(NamedTuple):
    """One table with the names of its networks that all tables share, and the publications that are its own."""

    benchmark: Benchmark
    names: list[str]
    metric: str
    without: list[str]


def replay_of(name: str) -> Replay:
    """A table by its name."""
    if name in TRAINED:
        file, metric = TRAINED[name]
        benchmark = read_benchmark_table(file)
        return Replay(benchmark, list(benchmark.models), metric, [])
    if name == SOURCES:
        benchmark, publication, metric = thesis_datasets(), "thesis", "auc"
        names = ["resnet18.tv_in1k" if source == "imagenet" else f"resnet18-from-{source}" for source in benchmark.models]
    else:
        table = published_table(name)
        benchmark, publication, metric = table, publication_of(table.origin), table.metric
        names = [name_in_table(name, model) for model in benchmark.models]
    origins = {row.origin for row in published_results() if publication_of(row.origin) == publication}
    return Replay(benchmark, names, metric, sorted(origins))


def measure(name: str) -> Iterator[tuple[str, str, str, str, float, float]]:
    """Table, target, group, method, weighted Kendall and regret of every method on every target."""
    replay = replay_of(name)
    benchmark = replay.benchmark
    prior, aggregated = held_out_prior(benchmark), fitted(benchmark)
    own = known_rows(benchmark, replay.names)
    rows = one_metric([row for row in published_results() if row.origin not in replay.without], replay.metric)
    elsewhere = [row.model_copy(update={"origin": "elsewhere"}) for row in rows]
    for target, (target_name, group) in enumerate(zip(benchmark.targets, benchmark.groups, strict=True)):
        models = benchmark.known(target)
        truth = benchmark.results[target, models]
        values = {"Static prior": prior[target, models], "Aggregation": aggregated[target, models]}
        values |= orders(replay, [replay.names[model] for model in models], target, own, elsewhere)
        for kind, column in benchmark.columns.items():
            if not column.part:
                values[KIND_TITLES.get(kind, column.title)] = column.values[target, models]
        if benchmark.validation is not None:
            values["Validation alone"] = benchmark.validation[target, models]
        for method, value in values.items():
            known = np.isfinite(value)
            if known.sum() > 2 and np.ptp(value[known]) > 0:
                tau, regret = weighted_kendall(value[known], truth[known]), top_1_regret(value[known], truth[known])
                yield name, target_name, group, method, tau, regret
        if benchmark.standard_deviations is not None:
            ceiling = noise_ceiling(truth, benchmark.standard_deviations[target, models])
            yield name, target_name, group, CEILING, ceiling, float("nan")


def orders(
    replay: Replay, names: list[str], target: int, own: Sequence[KnownResult], elsewhere: Sequence[KnownResult]
) -> dict[str, np.ndarray]:
    """What is expected of networks on a target: with the other targets known, without the publication, and from parts of that."""
    benchmark = replay.benchmark
    about = {"target": benchmark.targets[target], "group": benchmark.groups[target], "metric": replay.metric}
    known = expected_order(names, own=own, without=replay.without, **about).values
    cold = expected_order(names, without=replay.without, **about).values
    means = expected_order(names, own=elsewhere, without=replay.without, **about)
    top1, mean_ranks = imagenet_top1(names), np.where(means.num_own > 0, means.values, np.nan)
    return {
        "Order of select": known,
        "Cold start": cold,
        "Cold start, networks with ImageNet top-1": np.where(np.isnan(top1), np.nan, cold),
        "Order of select, networks with ImageNet top-1": np.where(np.isnan(top1), np.nan, known),
        "ImageNet top-1": top1,
        "Cold start, networks known elsewhere": np.where(np.isnan(mean_ranks), np.nan, cold),
        "Mean rank elsewhere": mean_ranks,
    }


def main(chosen: list[str]) -> None:
    """Measure."""
    tables = chosen or [*(table.name for table in published_tables()), SOURCES, *TRAINED]
    with limit_threads(1):
        rows = [row for name in tables for row in measure(name)]
    known = read_csv(RESULTS / "benchmark.csv")
    ceilings = known[known["table"].isin([*TRAINED]) & known["table"].isin(tables) & (known["method"] == CEILING)]
    found = pd.concat([pd.DataFrame(rows, columns=list(known.columns)), ceilings])
    places = {place: number for number, place in enumerate(found[["table", "target"]].drop_duplicates().itertuples(index=False))}
    found = found.iloc[np.argsort([places[place] for place in found[["table", "target"]].itertuples(index=False)], kind="stable")]
    file = sys.stdout if chosen else RESULTS / "benchmark.csv"
    found.to_csv(file, index=False, float_format="%.6f", na_rep="nan", lineterminator="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
