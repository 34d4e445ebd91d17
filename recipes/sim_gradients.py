"""What ρSIM does to gradients: a table of docs/results/sim.md, and what is said of its figure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from sim_looks import LookRow, StepRow
from sim_tables import NOTHING, StudyTables, excludes_0, head, marked, row_of
from sim_variants import BASELINE
from studies import Difference, difference_of

from crossgraft.tune.engine.gradient_norms import SPIKE, moving_average

COMPARED = {"largest_norm": ("Largest norm", 2), "num_spikes": ("Spikes", 2), "roughness": ("Roughness", 3)}
"""Fields of a look → title and digits of the difference to the baseline; a smoother training has less of each."""


def gradients_table(found: Mapping[str, StudyTables]) -> str:
    """Means over seeds, and paired differences to the baseline."""
    titles = [title for name, _ in COMPARED.values() for title in (name, "− baseline")]
    lines = head("Network", "Variant", "Median norm", *titles)
    for (model, variant), looks in _logged(found).items():
        cells = [_mean(row.median_norm for row in looks)]
        for field, (_, digits) in COMPARED.items():
            difference = _difference(_logged(found), model, variant, field)
            paired = "" if variant == BASELINE else marked(difference, digits)
            cells += [_mean(getattr(row, field) for row in looks), paired]
        lines.append(row_of([model, variant, *cells]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def smoothing_told(found: Mapping[str, StudyTables]) -> str:
    """In how many comparisons ρSIM or its placebo has less, and in how many more."""
    logged = _logged(found)
    differences = [
        difference
        for model, variant in logged
        for field in COMPARED
        if variant != BASELINE and (difference := _difference(logged, model, variant, field)) is not None
    ]
    clear = [each for each in differences if excludes_0(each)]
    fewer = sum(each.high < 0 for each in clear)
    return f"less in {fewer} and more in {len(clear) - fewer} of {len(differences)}"


def spikes_told(steps: Sequence[StepRow], num_epochs: int) -> str:
    """How many of the spikes in the figure are the last step of an epoch."""
    said: list[str] = []
    for variant in dict.fromkeys(row.variant for row in steps):
        norms = np.array([[row.norm] for row in steps if row.variant == variant])
        spikes = 2 + np.flatnonzero(norms[1:, 0] > SPIKE * moving_average(norms)[:-1, 0])  # numbers of steps
        ends = (spikes % (len(norms) // num_epochs) == 0).sum()
        said.append(f"{ends} of {len(spikes)} ({variant})")
    return ", ".join(said) or "–"


def _logged(found: Mapping[str, StudyTables]) -> dict[tuple[str, str], list[LookRow]]:
    """Network and variant → looks of trainings of which norms are known."""
    logged: dict[tuple[str, str], list[LookRow]] = {}
    for each in found.values():
        for row in each.looks:
            if row.num_steps is not None:
                logged.setdefault((row.model, row.variant), []).append(row)
    return logged


def _difference(logged: Mapping[tuple[str, str], Sequence[LookRow]], model: str, variant: str, field: str) -> Difference | None:
    base = {row.seed: getattr(row, field) for row in logged.get((model, BASELINE), ())}
    mine = {row.seed: getattr(row, field) for row in logged[model, variant]}
    return difference_of([mine[seed] - base[seed] for seed in mine if None not in (mine[seed], base.get(seed))])


def _mean(found: Iterable[float | None]) -> str:
    known = [value for value in found if value is not None]
    return f"{statistics.fmean(known):.3g}" if known else "–"
