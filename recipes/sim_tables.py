"""What the tables of docs/results/sim.md share."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sim_looks import LookRow, StepRow, read_looks, read_steps
from sim_steps import StepCostRow, read_step_costs
from sim_variants import BASELINE
from studies import Difference
from study_rows import Table, read_table
from study_trainings import ON

NOTHING = "Not trained yet."
Key = tuple[str, int]
"""Network, seed."""


class StudyTables(NamedTuple):
    """What is there of one piece."""

    table: Table
    looks: Sequence[LookRow]
    steps: Sequence[StepRow]
    costs: Mapping[str, StepCostRow]

    @classmethod
    def read(cls, folder: Path, name: str) -> StudyTables:
        """From its files."""
        costs = {model: row for (model, _), row in read_step_costs(folder, name).items()}
        return cls(read_table(folder, name), read_looks(folder, name), read_steps(folder, name), costs)

    def values(self, variant: str, metric: str) -> dict[Key, float]:
        """Of every training of a variant that has the number, ``nll`` among them."""
        if metric != "nll":
            return values(self.table, variant, metric)
        return {(row.model, row.seed): row.nll for row in self.looks if row.variant == variant and row.nll is not None}


def values(table: Table, variant: str, metric: str = "accuracy") -> dict[Key, float]:
    """Of every training of a variant that has the number."""
    return {
        (row.model, row.seed): value
        for row in table.trainings
        if row.variant == variant and (value := getattr(row, metric)) is not None
    }


def gaps(first: Mapping[Key, float], second: Mapping[Key, float]) -> list[float]:
    """First minus second in percentage points, where both are there."""
    return [100 * (first[key] - second[key]) for key in sorted(first) if key in second]


def points(found: Difference | None) -> str:
    """A mean difference with its interval."""
    return "–" if found is None else f"{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def ahead(found: Difference | None) -> str:
    """In how many pairs the first is ahead."""
    return "–" if found is None else f"{found.ahead} of {found.pairs}"


def row_of(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def head(*titles: str) -> list[str]:
    return [row_of(titles), "|---" * len(titles) + "|"]


def time_ratio(table: Table, variant: str, base: str = BASELINE) -> str:
    """Median processor time as a multiple of that of ``base``."""
    mine, other = values(table, variant, "cpu_seconds"), values(table, base, "cpu_seconds")
    ratios = [mine[key] / other[key] for key in mine if other.get(key)]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def clock_ratio(table: Table, variant: str, base: str = BASELINE) -> str:
    """Median time of the clock as a multiple of that of ``base``, of trainings on a GPU, which have no processor time."""
    on_gpu = Table(tuple(row for row in table.trainings if ON in row.versions))
    mine, other = values(on_gpu, variant, "seconds"), values(on_gpu, base, "seconds")
    ratios = [mine[key] / other[key] for key in mine if other.get(key)]
    return f"{statistics.median(ratios):.2f}" if ratios else "–"


def of_model(found: Mapping[Key, float], model: str) -> dict[Key, float]:
    return {key: value for key, value in found.items() if key[0] == model}
