"""Printed tables against the numbers that ship: cells, ranks, averages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.evaluate import agreement_by_target
from crossgraft.rank.published.record import CitedTable, ReproductionRecord
from crossgraft.rank.published.sources import PUBLISHED_SCORES, TARGETS, TITLES, shipped

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
    columns = [
        [None if cell is None else cell * scale for cell in tables["auc"][target]] for target in tables["targets"]
    ]
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
            title="Table 3: accuracy (%)",
            source=ITM,
            columns=["Model", *targets, "Mean, recomputed"],
            rows=rows,
            decimals=2,
        ),
        _method_table("Table 4: Spearman", tables["table4_spearman"], targets, decimals=2),
        _method_table("Table 4: Kendall", tables["table4_kendall"], targets, decimals=3),
    ]


def _method_table(
    title: str, cells: Mapping[str, Mapping[str, float]], targets: Sequence[str], *, decimals: int
) -> CitedTable:
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
