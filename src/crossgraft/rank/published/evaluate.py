"""How well each contender predicts the results of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.noise_ceiling import noise_ceiling
from crossgraft.rank.published.benchmark import Benchmark, Results
from crossgraft.rank.published.contenders import PRIOR, Contender, contenders, prior_residual
from crossgraft.rank.published.means import mean_over_targets
from crossgraft.rank.published.record import FriedmanRecord, MeanRecord, MethodRecord, ScenarioRecord
from crossgraft.rank.published.verdict import conclusion
from crossgraft.statistics import (
    LEAST_REGRETS,
    friedman,
    kendall,
    relative_top_k_accuracy,
    spearman,
    top_1_regret,
    weighted_kendall,
    weighted_kendall_itm,
)

PerTarget = Float64[np.ndarray, " num_targets"]
Measure = Callable[[np.ndarray, np.ndarray], float]

OTHER_MEASURES: Mapping[str, Measure] = {
    "spearman": spearman,
    "kendall": kendall,
    "weighted_kendall_itm": weighted_kendall_itm,
    "relative_top_1_accuracy": lambda score, truth: relative_top_k_accuracy(score, truth, k=1),
    "relative_top_3_accuracy": lambda score, truth: relative_top_k_accuracy(score, truth, k=3),
}


def evaluate_benchmark(benchmark: Benchmark) -> ScenarioRecord:
    """Judge every contender on every target: weighted Kendall, regret, gain over the prior, Friedman's test."""
    entries = list(contenders(benchmark))
    prior = next(entry.values for entry in entries if entry.name == PRIOR)
    methods = [*printed_methods(benchmark, prior), *(judge(benchmark, entry, prior) for entry in entries)]
    return ScenarioRecord(
        name=benchmark.name,
        title=benchmark.title,
        result=benchmark.result,
        models=list(benchmark.models),
        targets=list(benchmark.targets),
        target_groups=list(benchmark.groups),
        methods=methods,
        friedman=compare(methods),
        ceiling=ceiling(benchmark),
        notes=[
            f"{column.title} is not aggregated: {column.unusable}."
            for column in benchmark.columns.values()
            if column.unusable
        ],
        conclusion=conclusion(methods, benchmark.groups),
    )


def ceiling(benchmark: Benchmark) -> MeanRecord | None:
    """How well one seed ranks like another, mean over targets; None where no standard deviations are printed."""
    if benchmark.standard_deviations is None:
        return None
    pairs = zip(benchmark.results, benchmark.standard_deviations, strict=True)
    values = np.array([noise_ceiling(results, deviations) for results, deviations in pairs])
    return mean_over_targets(values, benchmark.groups, limits=(-1.0, 1.0))


def judge(benchmark: Benchmark, entry: Contender, prior: Results) -> MethodRecord:
    """One contender on every target, and its means with intervals."""
    taus = agreement_by_target(entry.values, benchmark.results)
    regrets = np.array([_on_target(top_1_regret, entry.values, benchmark.results, t) for t in _targets(benchmark)])
    gains = taus - agreement_by_target(prior, benchmark.results)
    residuals = agreement_by_target(entry.values, prior_residual(benchmark, prior))
    has_shares = bool(np.nanmin(benchmark.results) > 0)
    others = {
        name: float(np.nanmean(values))
        for name, measure in OTHER_MEASURES.items()
        if (has_shares or not name.startswith("relative"))
        and np.isfinite(
            values := np.array([_on_target(measure, entry.values, benchmark.results, t) for t in _targets(benchmark)])
        ).any()
    }
    is_prior, is_single = entry.name == PRIOR, entry.role in ("score", "part of a score")
    return MethodRecord(
        name=entry.name,
        title=entry.title,
        role=entry.role,
        weighted_kendall=[None if np.isnan(tau) else float(tau) for tau in taus],
        mean=mean_over_targets(taus, benchmark.groups, limits=(-1.0, 1.0)),
        regret=mean_over_targets(regrets, benchmark.groups, limits=(0.0, np.inf), least=LEAST_REGRETS),
        gain=None if is_prior else mean_over_targets(gains, benchmark.groups, limits=(-2.0, 2.0)),
        residual=mean_over_targets(residuals, benchmark.groups, limits=(-1.0, 1.0)) if is_single else None,
        other_means=others,
    )


def printed_methods(benchmark: Benchmark, prior: Results) -> list[MethodRecord]:
    """Methods of which only the weighted Kendall is printed: no regret, no residual."""
    of_prior = agreement_by_target(prior, benchmark.results)
    return [
        MethodRecord(
            name=name,
            title=f"{name} (as printed)",
            role="score",
            weighted_kendall=list(cells),
            mean=mean_over_targets(np.asarray(cells), benchmark.groups, limits=(-1.0, 1.0)),
            regret=MeanRecord(value=None, num_targets=0),
            gain=mean_over_targets(np.asarray(cells) - of_prior, benchmark.groups, limits=(-2.0, 2.0)),
        )
        for name, cells in benchmark.printed.items()
    ]


def agreement_by_target(values: Results, truth: Results) -> PerTarget:
    """Weighted Kendall on each target over the models that have both numbers; NaN where it is undefined."""
    return np.array([_on_target(weighted_kendall, values, truth, target) for target in range(len(truth))])


def compare(methods: Iterable[MethodRecord]) -> FriedmanRecord | None:
    """Friedman's test of the single scores; None with fewer than three."""
    scores = [method for method in methods if method.role == "score"]
    if len(scores) < 3:
        return None
    values = np.array([method.weighted_kendall for method in scores], dtype=np.float64).T
    found = friedman(values)
    return FriedmanRecord(
        methods=[method.title for method in scores],
        mean_ranks=found.mean_ranks.tolist(),
        statistic=found.statistic,
        p_value=found.p_value,
        critical_difference=found.critical_difference,
        cliques=found.cliques,
        num_targets=len(values),
    )


def _targets(benchmark: Benchmark) -> range:
    return range(len(benchmark.targets))


def _on_target(measure: Measure, values: Results, truth: Results, target: int) -> float:
    both = np.isfinite(values[target]) & np.isfinite(truth[target])
    if both.sum() < 2:
        return float("nan")
    return measure(values[target, both], truth[target, both])
