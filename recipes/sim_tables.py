"""What the tables of docs/results/sim.md share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from sim_looks import LookRow, StepRow, read_looks, read_steps
from sim_steps import StepCostRow, read_step_costs
from studies import Difference
from study_rows import Table, read_table

NOTHING = "Not trained yet."
Key = tuple[str, int]
"""Network, seed."""
_Paired = TypeVar("_Paired", Key, int)


class StudyTables(NamedTuple):
    """What is there of one piece."""

    table: Table
    looks: Sequence[LookRow]
    steps: Sequence[StepRow]
    costs: Mapping[str, StepCostRow]
    name: str

    @classmethod
    def read(cls, folder: Path, name: str) -> StudyTables:
        """From its files."""
        costs = {model: row for (model, _), row in read_step_costs(folder, name).items()}
        return cls(read_table(folder, name), read_looks(folder, name), read_steps(folder, name), costs, name)

    def values(self, variant: str, metric: str) -> dict[Key, float]:
        """Of every training of a variant that has the number, ``nll`` among them."""
        if metric != "nll":
            return values(self.table, variant, metric)
        return {(row.model, row.seed): row.nll for row in self.looks if row.variant == variant and row.nll is not None}

    def machines(self, variant: str) -> dict[Key, str]:
        """Versions and machine of every training of a variant."""
        return {(row.model, row.seed): row.versions for row in self.table.trainings if row.variant == variant}


def values(table: Table, variant: str, metric: str = "accuracy") -> dict[Key, float]:
    """Of every training of a variant that has the number."""
    return {
        (row.model, row.seed): value
        for row in table.trainings
        if row.variant == variant and (value := getattr(row, metric)) is not None
    }


def gaps(first: Mapping[_Paired, float], second: Mapping[_Paired, float]) -> list[float]:
    """First minus second in percentage points, where both are there."""
    return [100 * (first[key] - second[key]) for key in sorted(first) if key in second]


def points(found: Difference | None, digits: int = 2) -> str:
    """A mean difference with its interval."""
    return "–" if found is None else f"{found.mean:+.{digits}f} [{found.low:+.{digits}f}, {found.high:+.{digits}f}]"


def marked(found: Difference | None, digits: int = 2) -> str:
    """The same, bold where the interval excludes 0."""
    return f"**{points(found, digits)}**" if excludes_0(found) else points(found, digits)


def excludes_0(found: Difference | None) -> bool:
    """Whether the interval does; none is no reason to say so."""
    return found is not None and (found.low > 0 or found.high < 0)


def ahead(found: Difference | None) -> str:
    """In how many pairs the first is ahead."""
    return "–" if found is None else f"{found.ahead} of {found.pairs}"


def row_of(cells: Iterable[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def head(*titles: str) -> list[str]:
    """The first two lines of a table."""
    return [row_of(titles), "|---" * len(titles) + "|"]


def of_model(found: Mapping[Key, float], model: str) -> dict[Key, float]:
    """Those of one network."""
    return {key: value for key, value in found.items() if key[0] == model}


def of_seeds(found: Mapping[Key, float], model: str) -> dict[int, float]:
    """Those of one network by seed alone, to be compared with another network."""
    return {seed: value for (name, seed), value in found.items() if name == model}
