"""What foresees fine-tuning? Every published table, replayed: docs/results/benchmark.md.

    python recipes/benchmark.py --out docs/results/benchmark.md
    python recipes/benchmark.py --smoke             # one small table; the same code

It needs the package alone, no data and no network; what recipes/ground_truth.py has trained is replayed as one more table. On
each target of each table nothing is known of that target, nor of related ones, in any table. What is measured is kept beside
the page as a CSV file, one line per table, target and method.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from benchmark_page import COLD, ELSEWHERE, IMAGENET, KNOWN_WITH_TOP1, ORDER, WITH_ELSEWHERE, WITH_TOP1, write_page
from ground_truth_table import trained_tables

from crossgraft.compute import limit_threads
from crossgraft.rank.expected_order import expected_order, imagenet_top1, publication_of
from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.rank.published import Benchmark, thesis_datasets
from crossgraft.rank.published.contenders import fitted, held_out_prior
from crossgraft.rank.published.tables import published_table, published_tables
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import name_in_table, one_metric, published_results
from crossgraft.select.replay import known_rows
from crossgraft.statistics import top_1_regret, weighted_kendall

SMOKE = ("dart",)
SOURCES = "thesis-datasets"
ALL = (*(table.name for table in published_tables()), SOURCES, *trained_tables())


class Line(NamedTuple):
    """One method on one target of one table."""

    table: str
    target: str
    group: str
    method: str
    weighted_kendall: float
    regret: float


class Replay(NamedTuple):
    """One table with the names of its networks that all tables share, and the publications that are its own."""

    benchmark: Benchmark
    names: list[str]
    metric: str
    without: list[str]

    def known_elsewhere(self) -> list[KnownResult]:
        """Results of other publications as if they were one's own, in the metric of this table where they have several."""
        rows = one_metric([row for row in published_results() if row.origin not in self.without], self.metric)
        return [row.model_copy(update={"origin": "elsewhere"}) for row in rows]


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
    return [Line(table, target, group, method, float(tau), float(regret)) for table, target, group, method, tau, regret in rows]


def replay_of(name: str) -> Replay:
    """A table by its name."""
    if name in trained_tables():
        table = trained_tables()[name]
        return Replay(table.benchmark(), list(table.models), table.metric, [])
    if name == SOURCES:
        benchmark, publication, metric = thesis_datasets(), "thesis", "auc"
        names = ["resnet18.tv_in1k" if source == "imagenet" else f"resnet18-from-{source}" for source in benchmark.models]
    else:
        table = published_table(name)
        benchmark, publication, metric = table.benchmark(), publication_of(table.origin), table.metric
        names = [name_in_table(name, model) for model in benchmark.models]
    origins = {row.origin for row in published_results() if publication_of(row.origin) == publication}
    return Replay(benchmark, names, metric, sorted(origins))


def measure(replay: Replay) -> Iterator[Line]:
    """Every method on every target."""
    benchmark = replay.benchmark
    prior, aggregated = held_out_prior(benchmark), fitted(benchmark)
    own, elsewhere = known_rows(benchmark, replay.names), replay.known_elsewhere()
    for target, (name, group) in enumerate(zip(benchmark.targets, benchmark.groups, strict=True)):
        models = benchmark.known(target)
        truth = benchmark.results[target, models]
        values = {"Static prior": prior[target, models], "Aggregation": aggregated[target, models]}
        values |= orders(replay, [replay.names[model] for model in models], target, own, elsewhere)
        values |= {column.title: column.values[target, models] for column in benchmark.columns.values() if not column.part}
        if benchmark.validation is not None:
            values["Validation alone"] = benchmark.validation[target, models]
        for method, value in values.items():
            known = np.isfinite(value)
            if known.sum() > 2 and np.ptp(value[known]) > 0:
                tau = weighted_kendall(value[known], truth[known])
                yield Line(benchmark.name, name, group, method, tau, top_1_regret(value[known], truth[known]))
        if benchmark.standard_deviations is not None:
            ceiling = noise_ceiling(truth, benchmark.standard_deviations[target, models])
            yield Line(benchmark.name, name, group, "Noise ceiling", ceiling, float("nan"))


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
        ORDER: known,
        COLD: cold,
        WITH_TOP1: np.where(np.isnan(top1), np.nan, cold),
        KNOWN_WITH_TOP1: np.where(np.isnan(top1), np.nan, known),
        IMAGENET: top1,
        WITH_ELSEWHERE: np.where(np.isnan(mean_ranks), np.nan, cold),
        ELSEWHERE: mean_ranks,
    }


if __name__ == "__main__":
    main()
