"""Everything that competes on a benchmark, each as one value per target and model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
import scipy

from crossgraft.rank.aggregate import (
    Evidence,
    aggregate,
    borda,
    combine_evidence,
    fit_parameters,
    robust_rank_aggregation,
    static_prior,
)
from crossgraft.rank.published.benchmark import Benchmark, Results

PRIOR = "static_prior"
FITTED = "aggregate"


class Contender(NamedTuple):
    """One way to order the models of every target; larger = better, NaN = no value."""

    name: str
    title: str
    role: Literal["score", "part of a score", "control", "consensus", "prior and score", "fitted"]
    values: Results


def contenders(benchmark: Benchmark) -> Iterator[Contender]:
    """Single scores, the static prior, the consensus of scores, the prior with each score, and the fitted one."""
    for name, column in benchmark.columns.items():
        yield Contender(name, column.title, "part of a score" if column.part else "score", column.values)
    prior = held_out_prior(benchmark)
    yield Contender(PRIOR, "Static prior", "control", prior)
    usable = {name: column for name, column in benchmark.columns.items() if not column.unusable}
    whole = [column.values for column in usable.values() if not column.part]
    if len(whole) > 1:
        yield Contender("borda", "Borda count", "consensus", _consensus(benchmark, whole, borda))
        rra = _consensus(benchmark, whole, robust_rank_aggregation)
        yield Contender("robust_rank_aggregation", "Robust rank aggregation", "consensus", rra)
    for name, column in usable.items():
        both = _consensus(benchmark, [prior, column.values], borda)
        yield Contender(f"prior+{name}", f"Prior + {column.title}", "prior and score", both)
    yield Contender(FITTED, "Aggregation (prior × evidence)", "fitted", fitted(benchmark))


def held_out_prior(benchmark: Benchmark) -> Results:
    """The static prior of each target from the targets of all other groups."""
    values = np.full_like(benchmark.results, np.nan)
    for held_out, others in benchmark.folds():
        for target in held_out:
            models = benchmark.known(target)
            values[target, models] = static_prior(benchmark.results[np.ix_(others, models)]).values
    return values


def prior_residual(benchmark: Benchmark, prior: Results) -> Results:
    """How much better a model did than the prior says, in relative ranks."""
    ranks = scipy.stats.rankdata(-benchmark.results, axis=1, nan_policy="omit")
    return -(ranks - 0.5) / np.isfinite(benchmark.results).sum(axis=1, keepdims=True) - prior


def _consensus(benchmark: Benchmark, values: list[Results], combine: Callable[[Results], np.ndarray]) -> Results:
    """One order a target; scores that lack a model there are left out."""
    combined = np.full_like(benchmark.results, np.nan)
    for target in range(len(benchmark.targets)):
        models = benchmark.known(target)
        rows = np.array([matrix[target, models] for matrix in values])
        complete = rows[np.isfinite(rows).all(axis=1)]
        if len(complete):
            combined[target, models] = combine(complete)
    return combined


def fitted(benchmark: Benchmark) -> Results:
    """``aggregate`` on each target, with parameters fitted on the targets of all other groups.

    The evidence is the mean of all usable whole scores: none is chosen after looking at results.
    """
    z = evidence_matrix(benchmark)
    values = np.full_like(benchmark.results, np.nan)
    for held_out, others in benchmark.folds():
        groups = [str(benchmark.groups[target]) for target in others.tolist()]
        parameters = fit_parameters(benchmark.results[others], z[others], groups)
        for target in held_out:
            models = benchmark.known(target)
            posterior = aggregate(
                benchmark.results[np.ix_(others, models)],
                usable_evidence(benchmark, int(target), models),
                parameters=parameters,
                groups=groups,
            )
            values[target, models] = posterior.mean
    return values


def usable_evidence(benchmark: Benchmark, target: int, models: np.ndarray) -> list[Evidence]:
    """Whole scores that this library reproduces, on one target; published tables have no errors."""
    whole = [column for column in benchmark.columns.values() if not column.part and not column.unusable]
    return [Evidence(column.values[target, models]) for column in whole]


def evidence_matrix(benchmark: Benchmark) -> Results:
    """Combined evidence on every target; NaN where a model has none."""
    values = np.full_like(benchmark.results, np.nan)
    for target in range(len(benchmark.targets)):
        models = benchmark.known(target)
        signal, error = combine_evidence(usable_evidence(benchmark, target, models), len(models))
        values[target, models] = np.where(np.isfinite(error), signal, np.nan)
    return values
