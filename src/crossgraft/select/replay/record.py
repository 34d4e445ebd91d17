"""What is recorded of a replay of the selection rule on tables of results."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.rank.published.record import MeanRecord
from crossgraft.records.base import SCHEMA_VERSION, Record, Reference


class ReplayRow(Record):
    """What one way of choosing hands over within one budget: the mean over targets of its regret."""

    method: Literal["select", "prior", "prior_order_best_val", "imagenet", "halving", "random", "all_trained"]
    budget: str = Field(description="As it was given.")
    mean_regret: float | None = Field(
        description="Best result minus that of the model handed over, in the unit of the table. None: it chose on no target."
    )
    low: float | None = Field(
        default=None, description="95 % interval over groups of targets; None: no_interval_reason says why."
    )
    high: float | None = None
    no_interval_reason: str | None = Field(default=None, description="Why there is a mean and no interval.")
    worst_regret: float | None = None
    num_targets: int = Field(description="Targets on which it could choose within the budget.")
    beyond_select: MeanRecord | None = Field(
        default=None, description="Regret minus that of select on the same targets; above 0: select does better."
    )


class OrderRow(Record):
    """How well an order foresees the results: weighted Kendall, mean over targets."""

    order: Literal["prior", "static_prior", "imagenet"]
    weighted_kendall: MeanRecord
    beyond_static_prior: MeanRecord | None = Field(
        default=None, description="Minus that of the static prior, of the same networks."
    )


class ReplayRecord(Record):
    """A table of results, and what ``select`` and simpler ways would have handed over on each of its targets."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["selection-replay"] = "selection-replay"
    name: str
    title: str
    num_models: int
    targets: list[str]
    target_groups: list[str] = Field(description="Targets of one group are unknown together.")
    budgets: list[str]
    is_cold: bool = Field(description="Whether nothing of the table itself was known.")
    has_val: bool = Field(description="Whether choices are made by val; otherwise by the results themselves.")
    has_seconds: bool = Field(description="Whether costs are known; otherwise all models cost the same.")
    rows: list[ReplayRow]
    orders: list[OrderRow]
    notes: list[str] = []
    conclusion: str = ""
    references: list[Reference] = []

    def row(self, method: str, budget: str) -> ReplayRow:
        """The row of a method within a budget."""
        return next(row for row in self.rows if (row.method, row.budget) == (method, budget))
