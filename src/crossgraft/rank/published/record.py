"""Published results, evaluated again."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import Record


class MeanRecord(Record):
    """A mean over targets with its 95 % interval over groups of related targets."""

    value: float | None
    low: float | None = None
    high: float | None = None
    num_targets: int = Field(description="Targets on which the quantity is defined.")
    no_interval_reason: str | None = Field(default=None, description="Why there is a value and no interval.")


class MethodRecord(Record):
    """One way to order models, judged on every target of a benchmark."""

    name: str
    title: str
    role: Literal["score", "part of a score", "control", "consensus", "prior and score", "fitted"]
    weighted_kendall: list[float | None] = Field(description="One value per target; None where the score is constant.")
    mean: MeanRecord
    regret: MeanRecord = Field(description="Best result minus the result of the first choice.")
    gain: MeanRecord | None = Field(default=None, description="Weighted Kendall minus that of the static prior.")
    residual: MeanRecord | None = Field(default=None, description="Weighted Kendall with truth minus static prior.")
    other_means: dict[str, float] = Field(default={}, description="Means of other measures over the targets.")


class FriedmanRecord(Record):
    """Friedman's test over targets and Nemenyi's critical difference."""

    methods: list[str]
    mean_ranks: list[float]
    statistic: float
    p_value: float
    critical_difference: float
    cliques: list[list[int]]
    num_targets: int


class ReproductionRecord(Record):
    """How many printed cells the shipped numbers give again."""

    table: str
    num_cells: int
    num_equal: int
    num_undefined: int = 0
    decimals: int = 2


class ScenarioRecord(Record):
    """One benchmark: what fine-tuning gave for models × targets, and how well each method foresees it."""

    name: str
    title: str
    result: str = Field(description="What was measured after fine-tuning, for example AUC (fraction).")
    models: list[str]
    targets: list[str]
    target_groups: list[str] = Field(description="Targets of one group are left out together.")
    methods: list[MethodRecord]
    friedman: FriedmanRecord | None = None
    ceiling: MeanRecord | None = Field(
        default=None, description="Weighted Kendall of one seed's results with another's; None = no deviations are printed."
    )
    reproduction: ReproductionRecord | None = None
    notes: list[str] = []
    conclusion: str = ""


class CitedTable(Record):
    """Numbers as a paper prints them, and averages recomputed from them."""

    title: str
    source: str
    columns: list[str]
    rows: list[list[str | float | None]]
    decimals: int
    notes: list[str] = []


class SlipRecord(Record):
    """A printed number that does not follow from the paper's own data."""

    where: str
    printed: str
    recomputed: str
    consequence: str


class AnswerRecord(Record):
    """A question of the paper, answered from its data."""

    question: str
    answer: str
