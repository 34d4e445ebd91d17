"""The static prior of a zoo, and prior × evidence: what known results and scores together say of each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Literal

import numpy as np

from crossgraft.rank.aggregate import Aggregation, Evidence, Parameters, aggregate, fit_parameters
from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.contenders import evidence_matrix
from crossgraft.rank.published.sources import REVERSED, thesis_architectures, thesis_datasets
from crossgraft.rank.results_store import KnownTable
from crossgraft.rank.static_prior import StaticPrior, static_prior
from crossgraft.records import CheckRecord, ModelRecord, PriorRecord, PriorRow, ScoreCell
from crossgraft.words.formatting import NumberFormat, counted, joined

Scenario = Literal["datasets", "architectures"]

_BENCHMARK_TITLES: Mapping[Scenario, str] = {
    "datasets": "one architecture from 15 source data sets on 11 medical targets (thesis, Table 6.4)",
    "architectures": "9 architectures from ImageNet on 11 medical targets (thesis, Table 6.5)",
}
_SHARED = {name: name for name in ("logme", "sfda", "leep", "nleep")}
EVIDENCE_SCORES: Mapping[Scenario, Mapping[str, str]] = {
    "datasets": {**_SHARED, "nca_gradient": "ours"},
    "architectures": _SHARED,  # NCA × gradient is another formula there
}
"""Scores whose published values this library reproduces, so that their weight can be fitted → column of the table."""
_TAIL = 0.025
_TWO = NumberFormat(decimals=2)
NO_HISTORY = (
    "No other target has known results of two of these models, measured in the same way, so the static prior could not be "
    "asked."
)


def describe_prior(
    history: KnownTable,
    candidates: Sequence[ModelRecord],
    cells: Mapping[str, Sequence[ScoreCell]],
    titles: Mapping[str, str],
    *,
    seed: int,
) -> PriorRecord | None:
    """Prior and posterior of every candidate; None when no other target has results of two of them."""
    if not history.targets:
        return None
    prior = static_prior(history.results)
    scenario: Scenario = "datasets" if len({model.architecture for model in candidates}) == 1 else "architectures"
    evidence = {name: _evidence(cells[name], candidates) for name in EVIDENCE_SCORES[scenario] if name in cells}
    evidence = {name: entry for name, entry in evidence.items() if np.isfinite(entry.values).sum() > 1}
    parameters = fitted_parameters(scenario, tuple(evidence))
    posterior = aggregate(
        history.results,
        list(evidence.values()),
        parameters=parameters,
        groups=history.groups,
        models=[model.name for model in candidates],
        families={model.name: model.family for model in candidates},
        num_parameters={model.name: model.num_parameters for model in candidates},
        seed=seed,
    )
    rows = _rows(candidates, prior, history, posterior)
    used = [titles[name] for name in evidence]
    return PriorRecord(
        targets=list(dict.fromkeys(history.targets)),
        origins=history.origins,
        rows=rows,
        evidence=list(evidence),
        fitted_on=_BENCHMARK_TITLES[scenario],
        shrinkage=parameters.shrinkage,
        slope=parameters.slope,
        noise=parameters.noise,
        summary=_summary(rows, used, parameters, len(set(history.targets))),
    )


def check_prior(prior: PriorRecord | None) -> CheckRecord:
    """Whether the static prior was computed."""
    if prior is None:
        return CheckRecord(title="Static prior", severity="not assessed", text=NO_HISTORY)
    unknown = [row.model for row in prior.rows if row.num_targets == 0]
    text = f"Results on {counted(len(prior.targets), 'other target')} are known ({'; '.join(prior.origins)})."
    if unknown:
        text += f" Nothing is known of {joined(unknown)}; they lean on known models of their family and size."
    return CheckRecord(title="Static prior", severity="notice" if unknown else "passed", text=text)


@cache
def fitted_parameters(scenario: Scenario, scores: tuple[str, ...]) -> Parameters:
    """How much prior and evidence count, fitted on a published benchmark with the same scores as they are.

    Without scores the slope is 0.
    """
    benchmark = thesis_datasets() if scenario == "datasets" else thesis_architectures()
    if not scores:
        nothing = np.full_like(benchmark.results, np.nan)
        return fit_parameters(benchmark.results, nothing, list(benchmark.groups))
    columns = {name: benchmark.columns[EVIDENCE_SCORES[scenario][name]] for name in scores}
    if scenario == "architectures":  # Table 6.3 turns some scores round after the fact; here nothing is
        columns = {
            name: column._replace(values=-column.values) if name in REVERSED else column
            for name, column in columns.items()
        }
    as_they_are: Benchmark = replace(benchmark, columns=columns)
    return fit_parameters(benchmark.results, evidence_matrix(as_they_are), list(benchmark.groups))


def _evidence(cells: Sequence[ScoreCell], candidates: Sequence[ModelRecord]) -> Evidence:
    by_model = {cell.model: cell for cell in cells}
    own = [by_model[model.name] for model in candidates]
    values = np.array([np.nan if cell.value is None else cell.value for cell in own])
    errors = np.array([np.nan if cell.standard_error is None else cell.standard_error for cell in own])
    return Evidence(values, errors)


def _num_targets(history: KnownTable) -> list[int]:
    """On how many other targets each model is known; one target may be known by several protocols."""
    known = np.isfinite(history.results)
    targets = np.asarray(history.targets)
    return [len(set(targets[known[:, model]].tolist())) for model in range(known.shape[1])]


def _rows(
    candidates: Sequence[ModelRecord], prior: StaticPrior, history: KnownTable, posterior: Aggregation
) -> list[PriorRow]:
    num_targets = _num_targets(history)
    known = [model for model in np.argsort(-prior.values, kind="stable").tolist() if num_targets[model]]
    cumulative = np.cumsum(posterior.rank_probabilities, axis=1)
    order = np.argsort(-posterior.mean, kind="stable").tolist()
    return [
        PriorRow(
            model=candidates[model].name,
            num_targets=num_targets[model],
            mean_rank=float(prior.mean_ranks[model]) if num_targets[model] else None,
            prior_rank=known.index(model) + 1 if num_targets[model] else None,
            posterior_rank=place,
            probability_best=float(posterior.probability_best[model]),
            rank_low=int(np.searchsorted(cumulative[model], _TAIL)) + 1,
            rank_high=int(np.searchsorted(cumulative[model], 1 - _TAIL)) + 1,
            origins=[*history.spoke[model]] if history.spoke else [],
        )
        for place, model in enumerate(order, start=1)
    ]


def _summary(rows: Sequence[PriorRow], used: Sequence[str], parameters: Parameters, num_targets: int) -> str:
    first = min((row for row in rows if row.prior_rank is not None), key=lambda row: row.prior_rank or 0)
    best = max(rows, key=lambda row: row.probability_best)
    text = f"The static prior, which never looks at these images, puts {first.model} first: it did best on average on "
    text += f"{counted(num_targets, 'other target')}. "
    if not used:
        why = "none of the computed scores has a known weight"
    elif parameters.slope == 0:
        why = f"{joined(used)} added nothing beyond the prior on published results"
    else:
        return (
            text
            + f"Prior and {joined(used)} together: {best.model} is best with probability {_TWO(best.probability_best)}."
        )
    return text + f"By the prior alone ({why}), {best.model} is best with probability {_TWO(best.probability_best)}."
