"""What ``crossgraft select`` writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import SCHEMA_VERSION, Record, Reference
from crossgraft.records.checks import CheckRecord
from crossgraft.records.data import DatasetRecord
from crossgraft.records.editing import MayBeEdited
from crossgraft.records.looks import LooksRecord
from crossgraft.records.tuning import MetricRecord, PlanRecord, SplitRow, TunedModelRecord


class FidelityCost(Record):
    """What one model costs in one kind of trial."""

    kind: str = Field(description="'full', 'curve:epoch=E', 'low:size=SHARE' or 'score:NAME'.")
    seconds: float = Field(description="From nothing, measured when the selection was planned.")
    size_pixels: int | None = Field(default=None, description="Side of the input; None: no network is trained.")


class PlannedModel(Record):
    """One model of the zoo before the first trial."""

    name: str
    source: str = Field(description="Architecture, as the zoo names it.")
    num_parameters: int
    costs: list[FidelityCost] = Field(default=[], description="Empty where it could not be planned.")
    loading_seconds: float = Field(
        default=0.0,
        description="To load the network, a part of each cost; a training that was paused takes as long to go on.",
    )
    plan: PlanRecord | None = Field(default=None, description="Of its whole training.")
    reason: str | None = Field(default=None, description="Why it takes no part.")
    known_from: list[str] = Field(default=[], description="Who measured exactly these weights on other data.")
    prior_mean: float = Field(description="Expected standing, in normal scores: 0 = middling.")
    prior_deviation: float

    def seconds(self, kind: str) -> float | None:
        """Cost of a kind; None where it cannot be done."""
        return next((cost.seconds for cost in self.costs if cost.kind == kind), None)


class TrialRecord(Record):
    """One thing that was done with one model."""

    model: str
    kind: str
    value: float | None = Field(description="On val, larger = better; None: it failed.")
    standard_error: float | None = None
    reason: str | None = Field(default=None, description="Why it failed.")
    seconds: float = Field(default=0.0, description="That it really took.")


class RungRecord(Record):
    """Trials of one kind that were decided on together."""

    kind: str
    models: list[str]
    booked_seconds: float
    gain: float = Field(
        description="Expected improvement in normal scores, by which it was chosen; 0: it finishes a model."
    )
    is_finish: bool = False
    trials: list[TrialRecord] | None = Field(default=None, description="None: decided, and not carried out yet.")


class SelectionPlanRecord(Record):
    """Costs and budget, kept so that a selection that was stopped decides alike."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["selection-plan"] = "selection-plan"
    budget: str
    budget_seconds: float
    seconds_of_all: float = Field(description="To fine-tune all models, as many at a time as trials.")
    num_parallel: int
    timing_seconds: float | None = Field(default=None, description="To measure these costs, beside the budget.")
    models: list[PlannedModel]
    standard_error: float | None = Field(description="Of val, for a model of a typical quality; None: not known.")
    val_too_small: str | None = Field(
        default=None, description="Why val tells nothing apart, so that nothing is tried."
    )
    rungs: list[RungRecord] = Field(default=[], description="What is expected to be done if nothing surprises.")
    expected_winner: str | None = None
    notes: list[str] = []

    def model(self, name: str) -> PlannedModel:
        """The model called ``name``."""
        return next(model for model in self.models if model.name == name)


class JournalRecord(Record):
    """What was decided and done so far."""

    rungs: list[RungRecord] = []


class CandidateRecord(Record):
    """What became of one model."""

    name: str
    state: Literal["selected", "finished", "dropped", "failed", "not tried"]
    reason: str
    num_parameters: int
    known_from: list[str] = []
    tried: list[str] = Field(default=[], description="Kinds of its trials, in their order.")
    val: float | None = Field(default=None, description="Of its whole training; None: it was not finished.")
    expected: float = Field(description="Expected result, in the unit of the belief.")
    deviation: float
    probability_best: float
    probability_better: float | None = Field(default=None, description="Than the one that is handed over.")
    booked_seconds: float = 0.0


class NextHourRecord(Record):
    """What another hour would be spent on."""

    kind: str
    models: list[str]
    booked_seconds: float
    gain: float = Field(description="Expected improvement, in the unit of the belief.")


class SelectionRecord(MayBeEdited):
    """Everything that ``crossgraft select`` found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["selection"] = "selection"
    dataset: DatasetRecord
    splits: list[SplitRow]
    leakage: str
    leakage_checked: bool
    plan: SelectionPlanRecord
    prefer: str
    selected: str
    leader: str = Field(description="The model with the highest expectation; another one than selected by --prefer.")
    not_separable: list[str] = Field(
        default=[], description="Models that cannot be told apart from the leader, lightest first."
    )
    preferred_by: str = Field(description="'accurate', 'small', 'fast', or 'cost' where val tells nothing apart.")
    candidates: list[CandidateRecord] = Field(description="The selected one first, then by expectation.")
    rungs: list[RungRecord]
    unit: Literal["metric", "normal score"] = Field(description="Of expectations and of the regret.")
    expected_regret: float = Field(description="Of the selected model beside the best of all, ≥ 0.")
    next_hour: NextHourRecord | None = Field(default=None, description="None: nothing would be worth it.")
    selection_metric: str = Field(description="On val.")
    primary_metric: str
    metrics: list[MetricRecord] = Field(description="Of the selected model on test, over all classes.")
    model: TunedModelRecord
    training: str = Field(description="Run directory of the selected model, in that of the selection.")
    saved_model: str | None = None
    booked_seconds: float
    seconds: float = Field(description="Of all trials in this and in earlier attempts.")
    looks: LooksRecord | None = None
    checks: list[CheckRecord] = []
    warnings: list[str] = []
    notes: list[str] = []
    references: list[Reference] = []

    def candidate(self, name: str) -> CandidateRecord:
        """The model called ``name``."""
        return next(row for row in self.candidates if row.name == name)

    def metric(self, name: str) -> MetricRecord | None:
        """The metric called ``name``, on test."""
        return next((row for row in self.metrics if row.metric == name), None)

    @property
    def share_of_all(self) -> float | None:
        """Booked seconds over those of tuning all models."""
        return self.booked_seconds / self.plan.seconds_of_all if self.plan.seconds_of_all > 0 else None
