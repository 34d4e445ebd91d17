"""Printed numbers that do not follow from the papers' own data, each recomputed here."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.published.benchmark import Benchmark
from crossgraft.rank.published.evaluate import agreement_by_target
from crossgraft.rank.published.record import SlipRecord
from crossgraft.rank.published.sources import PUBLISHED_SCORES, TARGETS, TITLES, shipped
from crossgraft.statistics import Friedman, critical_difference, friedman, friedman_of_ranks, method_ranks

PRINTED_DIFFERENCE = 2.792
PRINTED_LEADS = {"Pneumonia": 0.40, "OrganA": 0.25, "Derma": 0.24, "OCT": 0.21, "Tissue": 0.20, "OrganS": 0.12}
"""By how much, says the text below Table 6.2, the thesis' score outperforms N-LEEP."""

Taus = Float64[np.ndarray, "num_targets num_methods"]


def thesis_errata(datasets: Benchmark, architectures: Benchmark) -> list[SlipRecord]:
    """The errata of chapter 6, from the printed tables and the shipped scores."""
    return [
        _ranks_of_pneumonia(_taus(datasets)),
        _average_row(_taus(architectures)),
        _critical_difference(friedman(_taus(datasets))),
        _leads(_taus(datasets)),
    ]


def itm_errata() -> list[SlipRecord]:
    """Eq. 1 is not what Table 1 holds."""
    return [
        SlipRecord(
            where="Table 1, and eq. 1",
            printed="weighted Kendall 0.79 of SFDA on CIFAR10, where ρ is 0.70 and τ is 27/45",
            recomputed="no ranking of ten models with these ρ and τ reaches more than 0.770 under eq. 1; SciPy's definition "
            "reaches 0.810",
            consequence="The table was computed with SciPy's weightedtau, which is used here throughout.",
        )
    ]


def _taus(benchmark: Benchmark) -> Taus:
    columns = [agreement_by_target(benchmark.columns[name].values, benchmark.results) for name in PUBLISHED_SCORES]
    return np.stack(columns, axis=1)


def _ranks_of_pneumonia(taus: Taus) -> SlipRecord:
    row = list(TARGETS.values()).index("Pneumonia")
    printed = shipped("thesis")["dataset"]["printed_rank"]["pneumoniamnist"]
    ranks = dict(zip(PUBLISHED_SCORES, method_ranks(taus)[row].astype(int).tolist(), strict=True))
    values = dict(zip(PUBLISHED_SCORES, taus[row].tolist(), strict=True))
    differing = [name for name in PUBLISHED_SCORES if printed[name] != ranks[name]]
    return SlipRecord(
        where="Table 6.2, row Pneumonia",
        printed=", ".join(f"{TITLES[name]} rank {printed[name]}" for name in differing),
        recomputed=", ".join(f"{TITLES[name]} rank {ranks[name]} ({values[name]:.4f})" for name in differing),
        consequence="The row of average ranks uses the recomputed ranks, so it does not follow from the ranks printed above "
        "it; the p-value is right.",
    )


def _average_row(taus: Taus) -> SlipRecord:
    tables = shipped("thesis")["model"]
    right = friedman(taus)
    ranks = [[row[name] for name in PUBLISHED_SCORES] for row in tables["repository_rank"].values()]
    used = friedman_of_ranks(np.array(ranks, dtype=np.float64))
    means = dict(zip(PUBLISHED_SCORES, right.mean_ranks.tolist(), strict=True))
    differing = [name for name in PUBLISHED_SCORES if round(means[name], 2) != tables["printed_average_rank"][name]]
    return SlipRecord(
        where="Table 6.3, row of average ranks, and its Friedman test",
        printed=", ".join(f"{TITLES[n]} {tables['printed_average_rank'][n]:.2f}" for n in differing)
        + f"; p = {used.p_value:.3f}",
        recomputed=", ".join(f"{TITLES[n]} {means[n]:.2f}" for n in differing) + f"; p = {right.p_value:.3f}",
        consequence="Both come from a file of ranks that differs in six cells (Derma, Tissue) from the ranks printed above; "
        "the conclusion, no significant difference, stays.",
    )


def _critical_difference(test: Friedman) -> SlipRecord:
    num_methods, num_targets = len(PUBLISHED_SCORES), len(TARGETS)
    q = [critical_difference(k, 1) / np.sqrt(k * (k + 1) / 6) for k in (num_methods, num_methods + 1)]
    best = test.cliques[0]
    names = [TITLES[PUBLISHED_SCORES[index]] for index in best[1:]]
    return SlipRecord(
        where="Text below Table 6.2, critical difference",
        printed=f"{PRINTED_DIFFERENCE} (q of {num_methods + 1} methods, {q[1]:.3f})",
        recomputed=f"{critical_difference(num_methods, num_targets):.3f} (q of {num_methods} methods, {q[0]:.3f})",
        consequence=f"The conclusion stays: {', '.join(names[:-1])} and {names[-1]} do not differ significantly from the best.",
    )


def _leads(taus: Taus) -> SlipRecord:
    ours, nleep = PUBLISHED_SCORES.index("ours"), PUBLISHED_SCORES.index("nleep")
    leads = dict(zip(TARGETS.values(), (taus[:, ours] - taus[:, nleep]).tolist(), strict=True))
    wrong = [target for target, printed in PRINTED_LEADS.items() if abs(leads[target] - printed) > 0.011]
    return SlipRecord(
        where="Text below Table 6.2, lead of the proposed score over N-LEEP",
        printed=", ".join(f"{target} {PRINTED_LEADS[target]:.2f}" for target in wrong),
        recomputed=", ".join(f"{target} {leads[target]:.2f}" for target in wrong),
        consequence="The leads follow from Table 6.2 itself; that of Tissue is a third of what the text says.",
    )
