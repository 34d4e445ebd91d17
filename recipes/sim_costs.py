"""What ρSIM costs, and what it does to gradients: two tables of docs/results/sim.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from sim_looks import LookRow, StepRow
from sim_tables import NOTHING, StudyTables, clock_ratio, head, row_of, time_ratio, values
from sim_variants import BASELINE, PLACEBO, SIM
from studies import half_width
from study_rows import Table

from crossgraft.tune.engine.gradient_norms import moving_average
from crossgraft.tune.measuring.gradients import SPIKE

TABLE_11 = {
    "resnet20": "ResNet-18: 1.11, 1.04",
    "resnet32": "ResNet-34: 1.13, 1.05",
    "resnet56": "ResNet-50: 1.18, 1.07",
}
"""Time and memory as multiples of the baseline's."""
START_IN_CLOCK = ("cifar10_depth",)
"""Pieces of which every training was the first of its process on the GPU, whose start is then in the time of the clock."""


def costs_table(found: Mapping[str, StudyTables]) -> str:
    lines = head(
        "Set",
        "Network",
        "Variant",
        "Time",
        "Time of a step",
        "Time on a GPU",
        "Memory of a step",
        "Parameters beside the network",
        "Published: time, memory",
    )
    for name, each in found.items():
        for model in dict.fromkeys(row.model for row in each.table.trainings):
            for variant in (SIM, PLACEBO):
                one = Table(tuple(row for row in each.table.trainings if row.model == model))
                own_looks = [row for row in each.looks if row.model == model]
                mine = next((row for row in own_looks if row.variant == variant), None)
                if not values(one, variant):
                    continue
                step = f"{each.costs[model].ratio:.2f}" if variant == SIM and model in each.costs else "–"
                own = "–" if mine is None or mine.num_own_parameters is None else f"{mine.num_own_parameters:,}"
                published = TABLE_11.get(model, "–") if variant == SIM else ""
                cells = [
                    name,
                    model,
                    variant,
                    time_ratio(one, variant),
                    step,
                    "–" if name in START_IN_CLOCK else clock_ratio(one, variant),
                    _memory_ratio(own_looks, variant),
                    own,
                ]
                lines.append(row_of([*cells, published]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def _memory_ratio(looks: Sequence[LookRow], variant: str) -> str:
    """Median over seeds of the memory as a multiple of the baseline's, with the range where seeds differ."""
    peaks = {(row.variant, row.seed): row.peak_bytes for row in looks if row.peak_bytes}
    seeds = [seed for name, seed in peaks if name == variant and (BASELINE, seed) in peaks]
    ratios = sorted(peaks[variant, seed] / peaks[BASELINE, seed] for seed in seeds)
    if not ratios:
        return "–"
    ends = f"{ratios[0]:.2f}", f"{ratios[-1]:.2f}"
    return f"{statistics.median(ratios):.2f}" + (f" ({' to '.join(ends)})" if ends[0] != ends[1] else "")


def gradients_table(found: Mapping[str, StudyTables]) -> str:
    lines = head("Network", "Variant", "Median norm", "Largest norm", "Spikes", "Roughness", "Roughness − baseline")
    for each in found.values():
        logged = [row for row in each.looks if row.num_steps is not None]
        for model, variant in dict.fromkeys((row.model, row.variant) for row in logged):
            own = [row for row in logged if (row.model, row.variant) == (model, variant)]
            base = {row.seed: row for row in logged if (row.model, row.variant) == (model, BASELINE)}
            means = [_mean(getattr(row, name) for row in own) for name in ("median_norm", "largest_norm", "num_spikes")]
            rough = {row.seed: row.roughness for row in own if row.roughness is not None}
            differences = [rough[seed] - (base[seed].roughness or 0.0) for seed in rough if seed in base]
            paired = "" if variant == BASELINE else _interval(differences)
            lines.append(row_of([model, variant, *means, _mean(rough.values()), paired]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def spikes_told(steps: Sequence[StepRow], num_epochs: int) -> str:
    """How many of the spikes in the figure are the last step of an epoch."""
    said: list[str] = []
    for variant in dict.fromkeys(row.variant for row in steps):
        norms = np.array([[row.norm] for row in steps if row.variant == variant])
        spikes = 2 + np.flatnonzero(norms[1:, 0] > SPIKE * moving_average(norms)[:-1, 0])  # numbers of steps
        ends = (spikes % (len(norms) // num_epochs) == 0).sum()
        said.append(f"{ends} of {len(spikes)} ({variant})")
    return ", ".join(said) or "–"


def _mean(found: Iterable[float | None]) -> str:
    known = [value for value in found if value is not None]
    return f"{statistics.fmean(known):.3g}" if known else "–"


def _interval(differences: Sequence[float]) -> str:
    if len(differences) < 2:
        return "–"
    mean, half = statistics.fmean(differences), half_width(differences)
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}]"
