"""How well each contender predicts the results of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.ground_truth import noise_ceiling
from crossgraft.rank.published.benchmark import Benchmark, Results
from crossgraft.rank.published.contenders import PRIOR, Contender, contenders, prior_residual
from crossgraft.rank.published.means import mean_over_targets
from crossgraft.rank.published.record import (
    CitedTable,
    FriedmanRecord,
    MeanRecord,
    MethodRecord,
    ReproductionRecord,
    ScenarioRecord,
)
from crossgraft.rank.published.sources import PUBLISHED_SCORES, TARGETS, TITLES, shipped
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
            f"{column.title} is not aggregated: {column.unusable}." for column in benchmark.columns.values() if column.unusable
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
    test = friedman(values)
    ranks = {**test._asdict(), "mean_ranks": test.mean_ranks.tolist()}
    return FriedmanRecord(methods=[method.title for method in scores], num_targets=len(values), **ranks)


def _targets(benchmark: Benchmark) -> range:
    return range(len(benchmark.targets))


def _on_target(measure: Measure, values: Results, truth: Results, target: int) -> float:
    both = np.isfinite(values[target]) & np.isfinite(truth[target])
    if both.sum() < 2:
        return float("nan")
    return measure(values[target, both], truth[target, both])


THESIS = "Thesis, chapter 6"
ITM = "ITM"


def reproduce_table(benchmark: Benchmark, scenario: str, table: str) -> ReproductionRecord:
    """Number of printed weighted Kendalls that follow from the shipped scores and AUCs at two decimals."""
    printed: Mapping[str, Mapping[str, float | None]] = shipped("thesis")[scenario]["printed_tau"]
    taus = {name: agreement_by_target(benchmark.columns[name].values, benchmark.results) for name in PUBLISHED_SCORES}
    pairs = [(row[name], taus[name][t]) for t, row in enumerate(printed.values()) for name in PUBLISHED_SCORES]
    return ReproductionRecord(
        table=table,
        num_cells=sum(cell is not None for cell, _ in pairs),
        num_equal=sum(cell is not None and round(tau, 2) == cell for cell, tau in pairs),
        num_undefined=sum(cell is None and np.isnan(tau) for cell, tau in pairs),
    )


def ablation_table(benchmark: Benchmark, figure: str) -> CitedTable:
    """The two terms alone and their product: what the figure draws, recomputed from the shipped parts."""
    names = ("lp", "fu", "ours")
    taus = {name: agreement_by_target(benchmark.columns[name].values, benchmark.results) for name in names}
    rows: list[list[str | float | None]] = [
        [target, *(float(taus[name][t]) for name in names)] for t, target in enumerate(benchmark.targets)
    ]
    rows.append(["Mean", *(float(taus[name].mean()) for name in names)])
    return CitedTable(
        title=f"{figure}: both terms alone and together (weighted Kendall, recomputed)",
        source=THESIS,
        columns=["Target", *(TITLES[name] for name in names)],
        rows=rows,
        decimals=2,
    )


def auc_table(scenario: str, title: str) -> CitedTable:
    """Tables 6.4 and 6.5: AUC × 100 of every source on every target, and recomputed means."""
    tables = shipped("thesis")[scenario]
    scale = 100 / tables["auc_unit"]
    columns = [[None if cell is None else cell * scale for cell in tables["auc"][target]] for target in tables["targets"]]
    rows: list[list[str | float | None]] = []
    for s, source in enumerate(tables["sources"]):
        cells = [column[s] for column in columns]
        rows.append([source, *cells, _mean(cells)])
    return CitedTable(
        title=title, source=THESIS, columns=["Source", *TARGETS.values(), "Mean"], rows=rows, decimals=2,
        notes=["The column Mean is recomputed; a source is not transferred to itself."],
    )  # fmt: skip


def itm_tables() -> list[CitedTable]:
    """Tables 1 to 4 of ITM as printed, with averages recomputed from their cells."""
    tables = shipped("itm")
    accuracy: dict[str, dict[str, float]] = tables["table3_accuracy"]
    targets: list[str] = tables["datasets"]
    rows: list[list[str | float | None]] = [
        [model, *(cells[t] for t in targets), _mean([cells[t] for t in targets])] for model, cells in accuracy.items()
    ]
    return [
        _method_table("Table 1: weighted Kendall", tables["table1_tau_w"], targets, decimals=2),
        _method_table("Table 1: seconds", tables["table1_seconds"], targets, decimals=2),
        _itm_ablation(tables["table2_ablation"]),
        CitedTable(
            title="Table 3: accuracy (%)", source=ITM, columns=["Model", *targets, "Mean, recomputed"], rows=rows, decimals=2
        ),
        _method_table("Table 4: Spearman", tables["table4_spearman"], targets, decimals=2),
        _method_table("Table 4: Kendall", tables["table4_kendall"], targets, decimals=3),
    ]


def _method_table(title: str, cells: Mapping[str, Mapping[str, float]], targets: Sequence[str], *, decimals: int) -> CitedTable:
    rows: list[list[str | float | None]] = [
        [method, *(row[target] for target in targets), row["Avg"], _mean([row[target] for target in targets])]
        for method, row in cells.items()
    ]
    columns = ["Method", *targets, "Average, printed", "Average, recomputed"]
    return CitedTable(title=title, source=ITM, columns=columns, rows=rows, decimals=decimals)


def _itm_ablation(rows: Sequence[Mapping[str, Any]]) -> CitedTable:
    iterations = list(rows[0]["tau_w_at"])
    return CitedTable(
        title="Table 2: mean weighted Kendall by iterations",
        source=ITM,
        columns=["Standardised", "Adaptive η", *(f"{number} iterations" for number in iterations), "Mean, recomputed"],
        rows=[
            [
                "yes" if row["standardise"] else "no",
                "yes" if row["adaptive_eta"] else "no",
                *row["tau_w_at"].values(),
                _mean(list(row["tau_w_at"].values())),
            ]
            for row in rows
        ],
        decimals=3,
    )


def _mean(cells: Sequence[float | None]) -> float:
    return float(np.mean([cell for cell in cells if cell is not None]))
