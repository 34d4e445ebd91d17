"""One option of ρSIM at a time: tables of docs/results/sim.md beside Fig. 3 and Table 10 of the paper."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator

import numpy as np
from scipy import stats
from sim_tables import NOTHING, Key, StudyTables, ahead, excludes_0, gaps, head, marked, points, row_of, values
from sim_variants import BASELINE, DISTANCE, DISTANCES, RHO, RHOS, SIM, WEIGHT, WEIGHTS
from studies import Difference
from study_rows import Table

SWEPT = {"rho": (RHO, RHOS), "weight": (WEIGHT, WEIGHTS)}
"""Option → its default, which every sweep has, and the other values."""
HEAVIEST = f"weight {max(WEIGHTS):g}"
TABLE_10 = {
    "Baseline (Wo/ SIM)": 94.65, "Cosine Similarity": 94.54, "KL Divergence": 94.85, "Wasserstein Distance": 94.50,
    "ℓ1 Loss": 94.77, "MSE Loss": 94.66, "MSE Loss (Normalized)": 94.94,
}  # fmt: skip


def half_width_of_all(table: Table, *, without: str = "") -> float | None:
    """Half of the 95 % interval that a mean difference of any two variants has, in points; None of too few trainings.

    Accuracy is taken as mean of its variant + what its seed shares + noise, whose variance is what is left over in all
    variants together, ``without`` one: with two seeds alone an interval of each difference by itself would say nothing.
    """
    variants = dict.fromkeys(row.variant for row in table.trainings if row.variant != without)
    every = [values(table, variant) for variant in variants]
    seeds = sorted(max(every, key=len, default=dict[Key, float]()))
    complete = [each for each in every if sorted(each) == seeds]
    if min(len(complete), len(seeds)) < 2:
        return None
    degrees = (len(complete) - 1) * (len(seeds) - 1)
    accuracy = np.array([[100 * each[seed] for seed in seeds] for each in complete])
    means = accuracy.mean(axis=1, keepdims=True) + accuracy.mean(axis=0, keepdims=True) - accuracy.mean()
    deviation = math.sqrt(((accuracy - means) ** 2).sum() / degrees)
    return float(stats.t.ppf(0.975, degrees)) * deviation * math.sqrt(2 / len(seeds))


def difference_to_baseline(table: Table, variant: str, *, without: str = "") -> Difference | None:
    """Mean difference in points over all seeds of the baseline; None where one of them is missing."""
    each, half = gaps(values(table, variant), values(table, BASELINE)), half_width_of_all(table, without=without)
    if not each or half is None or len(each) < len(values(table, BASELINE)):
        return None
    mean = statistics.fmean(each)
    return Difference(mean, mean - half, mean + half, sum(gap > 0 for gap in each), len(each))


def sweep_points(table: Table) -> dict[str, list[tuple[float, Difference]]]:
    """Value and difference to the baseline, by option."""
    return {
        option: [
            (value, found)
            for value, variant in _variants_of(option)
            if (found := difference_to_baseline(table, variant)) is not None
        ]
        for option in SWEPT
    }


def sweeps_table(found: StudyTables) -> str:
    """Every value of ρ and of the weight."""
    lines = head("Option", "Value", "Accuracy", "− baseline, points", "Ahead, seeds", "Memory of a step")
    for option in SWEPT:
        for value, variant in _variants_of(option):
            if values(found.table, variant):
                cells = [*_cells(found.table, variant), _memory(found, variant)]
                lines.append(row_of([option, f"{value:g}", *cells]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _memory(found: StudyTables, variant: str) -> str:
    """As a multiple of the baseline's."""
    peaks = {(row.variant, row.seed): row.peak_bytes for row in found.looks if row.peak_bytes}
    ratios = [peak / peaks[BASELINE, s] for (name, s), peak in peaks.items() if name == variant and (BASELINE, s) in peaks]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def losses_table(table: Table) -> str:
    """Every loss."""
    lines = head("Loss", "Accuracy", "− baseline, points", "Ahead, seeds", "Published, %", "Published − baseline")
    base = TABLE_10["Baseline (Wo/ SIM)"]
    named = {DISTANCE: (SIM, None), **{name: (f"loss {name}", title) for name, title in DISTANCES.items()}}
    for name, (variant, title) in named.items():
        published = ["–", "–"] if title is None else [f"{TABLE_10[title]:.2f}", f"{TABLE_10[title] - base:+.2f}"]
        if values(table, variant):
            lines.append(row_of([f"`{name}`", *_cells(table, variant), *published]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def beyond_chance(table: Table, *, without: str = "") -> str:
    """The variants whose interval excludes 0, in words."""
    variants = dict.fromkeys(row.variant for row in table.trainings if row.variant not in (BASELINE, without))
    found = {name: difference_to_baseline(table, name, without=without) for name in variants}
    clear = [f"{name} ({points(each)})" for name, each in found.items() if excludes_0(each)]
    return ", ".join(clear) or "none"


def widths_told(table: Table) -> str:
    """How much the width owes to the variant with the largest weight, which varies most."""
    every, others = half_width_of_all(table), half_width_of_all(table, without=HEAVIEST)
    if every is None or others is None:
        return "–"
    number = len({row.variant for row in table.trainings} - {BASELINE, HEAVIEST})
    return (
        f"±{every:.2f}, and ±{others:.2f} without {HEAVIEST}, which varies most; then they exclude 0 for "
        f"{beyond_chance(table, without=HEAVIEST)}, of {number} variants, of which chance alone makes about one in twenty"
    )


def _variants_of(option: str) -> Iterator[tuple[float, str]]:
    default, others = SWEPT[option]
    for value in sorted((default, *others)):
        yield value, SIM if value == default else f"{option} {value:g}"


def _cells(table: Table, variant: str) -> list[str]:
    found = difference_to_baseline(table, variant)
    return [f"{statistics.fmean(values(table, variant).values()):.3f}", marked(found), ahead(found)]
