"""The trained table as one more published table: for recipes/benchmark.py, and as a file for commands that read tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
from ground_truth_rows import FIDELITIES, FULL, NUM_BEST, SEEDS, Trained, read_cells, read_scores, seed_deviation, trained
from ground_truth_sets import SETS, TargetSet

from crossgraft.rank.published.tables import PublishedTable

ROWS = Path(__file__).parents[1] / "docs" / "results" / "ground_truth"
ORIGIN = "docs/results/ground_truth.md"
PROTOCOL = "full fine-tuning, at most 100 images a class, 64 pixels, AdamW with 2 learning rates, early stopping"
LEAST_TARGETS = 2
"""A prior of other targets needs one."""
NETWORKS = 17


@cache
def trained_tables(rows: Path = ROWS) -> Mapping[str, PublishedTable]:
    """By name, in AUC and in accuracy; empty until enough sets are complete."""
    found = (trained_table(metric, rows=rows) for metric in ("auc", "accuracy"))
    return {table.name: table for table in found if table is not None}


def trained_table(metric: str, *, rows: Path = ROWS, targets: Sequence[TargetSet] = SETS) -> PublishedTable | None:
    """Sets that are complete, in one metric; None below ``LEAST_TARGETS`` of them.

    Cheap evidence is the metric on val. The standard deviation between seeds is that of the middle one of the networks
    of a set with several, and stands for all of them.
    """
    complete = {target: found for target in targets if (found := complete_set(rows, target, metric))}
    if len(complete) < LEAST_TARGETS:
        return None
    models = tuple(dict.fromkeys(each.model for found in complete.values() for each in found))
    cells = [{each.model: each for each in found} for found in complete.values()]

    def matrix(value: Callable[[Trained], float | None]) -> np.ndarray:
        got = [[value(known[model]) if model in known else None for model in models] for known in cells]
        return np.array(got, dtype=np.float64)  # None becomes NaN

    results = matrix(lambda each: each.result)
    spread = np.array([[seed_deviation(found)] for found in complete.values()], dtype=np.float64)
    table = PublishedTable(
        name=f"trained_{metric}",
        title=f"Trained here ({metric})",
        source=ORIGIN,
        origin=ORIGIN,
        protocol=PROTOCOL,
        metric=metric,
        models=models,
        targets=tuple(target.name for target in complete),
        groups=tuple(target.group or target.name for target in complete),
        results=results,
        standard_deviations=np.where(np.isnan(results), np.nan, spread),
        validation=matrix(lambda each: each.first.val(metric)),
        seconds=matrix(lambda each: each.cpu_seconds[FULL]),
        kinds={kind: matrix(lambda each, kind=kind: each.low[kind]) for kind in FIDELITIES[1:]},
    )
    scores = score_kinds(rows, [target.name for target in complete], models)
    return replace(table, kinds={**table.kinds, **scores})


def score_kinds(rows: Path, targets: Sequence[str], models: Sequence[str]) -> dict[str, np.ndarray]:
    """Scores of frozen features as kinds of evidence, targets × models; NaN where a score has no value."""
    found = {(target, row.score, row.model): row.value for target in targets for row in read_scores(rows, target)}
    names = list(dict.fromkeys(score for _, score, _ in found))
    return {
        f"score:{name}": np.array(
            [[found.get((target, name, model)) for model in models] for target in targets], dtype=np.float64
        )
        for name in names
    }


def complete_set(rows: Path, target: TargetSet, metric: str) -> list[Trained]:
    """What is known of all networks of a set; empty unless each has all trainings of the first seed, and the best all seeds."""
    found = trained(read_cells(rows, target.name), metric)
    whole = len(found) == networks_of(target) and all(len(each.low) == len(FIDELITIES) - 1 for each in found)
    return found if whole and sum(len(each.values) == len(SEEDS) for each in found) >= NUM_BEST else []


def networks_of(target: TargetSet) -> int:
    """Number of networks that are trained on a set."""
    return NETWORKS - sum(_UNFIT.get(each, 1) for each in target.unfit)


_UNFIT = {"CIFAR-10": 4}
"""Number of networks of one pretraining set, where it is not 1."""


def table_csv(rows: Path, targets: Sequence[TargetSet], metric: str) -> str:
    """What ``rank --published`` and ``select --replay`` read, of the sets that are complete; val is that of the first seed."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    complete = {target: found for target in targets if (found := complete_set(rows, target, metric))}
    scores = {(target.name, row.score, row.model): row.value for target in complete for row in read_scores(rows, target.name)}
    names = list(dict.fromkeys(score for _, score, _ in scores))
    writer.writerow(["target", "model", "result", "val", "seconds", "group", "family", *FIDELITIES[1:], *names])
    for target, found in complete.items():
        for each in found:
            cheap = [f"{each.low[kind]:.6f}" for kind in FIDELITIES[1:]]
            cheap += [_cell(scores.get((target.name, name, each.model))) for name in names]
            group = target.group or target.name
            known = [_cell(each.first.val(metric)), _cell(each.cpu_seconds[FULL])]
            writer.writerow([target.name, each.model, f"{each.result:.6f}", *known, group, each.family, *cheap])
    return text.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.8g}"
