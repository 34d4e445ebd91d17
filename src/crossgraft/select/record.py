"""What ``crossgraft select`` writes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord, SplitRow
from crossgraft.edit.record import MayBeEdited
from crossgraft.metrics.record import CalibrationRecord, ConfusionRecord, MetricRecord
from crossgraft.records.base import CheckRecord, LooksRecord, Record, Reference, SparseRecord
from crossgraft.tune.record import PlanRecord, TunedModelRecord

SELECTION_VERSION = 2
"""Schema of a selection and of what holds one; 1 decided by beliefs and cheap trials."""


class PlannedModel(Record):
    """One model of the zoo before anything was trained."""

    name: str
    source: str = Field(description="Architecture, as the zoo names it.")
    num_parameters: int
    seconds: float | None = Field(
        default=None,
        description="Of its whole training with loading; costs within the noise of measuring are equal. None: it takes no part.",
    )
    plan: PlanRecord | None = Field(default=None, description="Of its whole training.")
    reason: str | None = Field(default=None, description="Why it takes no part.")
    expected: float = Field(description="What is known of it elsewhere, as a normal score: 0 = middling.")
    num_own_targets: int = Field(default=0, description="Own data on which it is known; 0: ImageNet and publications.")
    known_from: list[str] = Field(default=[], description="Who measured exactly these weights on other data.")


class SelectionPlanRecord(SparseRecord):
    """Costs, order and budget, kept so that a selection that was stopped decides alike."""

    sparse: ClassVar[frozenset[str]] = frozenset({"seconds_beside", "training_seconds"})

    schema_version: int = SELECTION_VERSION
    kind: Literal["selection-plan"] = "selection-plan"
    budget: str
    budget_seconds: float
    training_seconds: float | None = Field(
        default=None,
        description="What a budget that is a time leaves for trainings, beside start, these costs and page; None: all of it.",
    )
    seconds_of_all: float = Field(description="To fine-tune all models, as many at a time as trainings.")
    num_parallel: int
    timing_seconds: float | None = Field(default=None, description="To measure these costs.")
    seconds_beside: float | None = Field(
        default=None, description="Of all else that the command does: start, these costs, page; with --plan only."
    )
    models: list[PlannedModel]
    standard_error: float | None = Field(description="Of val, for a model of a typical quality; None: not known.")
    val_too_small: str | None = Field(default=None, description="Why val tells nothing apart, so that one is trained.")
    rounds: list[list[str]] = Field(default=[], description="What is trained together, if nothing surprises.")

    @property
    def seconds_for_trainings(self) -> float:
        """What may be booked."""
        return self.budget_seconds if self.training_seconds is None else self.training_seconds

    def model(self, name: str) -> PlannedModel:
        """The model called ``name``."""
        return next(model for model in self.models if model.name == name)


class CandidateRecord(Record):
    """What became of one model."""

    name: str
    state: Literal["selected", "trained", "failed", "not trained"]
    reason: str
    num_parameters: int
    place: int | None = Field(default=None, description="In the order in which models are tried, from 1.")
    expected: float = Field(description="What is known of it elsewhere, as a normal score: 0 = middling.")
    known_from: list[str] = []
    val: float | None = Field(default=None, description="Of its whole training, larger = better; None: there is none.")
    standard_error: float | None = Field(default=None, description="Of val, from the finite number of its images.")
    probability_better: float | None = Field(
        default=None, description="Than the one that is handed over, by val; None: it was not trained."
    )
    booked_seconds: float = 0.0


def _is_nothing(value: object) -> bool:
    """Whether it is left out of files, as in those of earlier versions."""
    return not value


class SelectionRecord(MayBeEdited):
    """Everything that ``crossgraft select`` found; ``report.json`` is this record."""

    schema_version: int = SELECTION_VERSION
    kind: Literal["selection"] = "selection"
    dataset: DatasetRecord
    splits: list[SplitRow]
    leakage: str
    leakage_checked: bool
    plan: SelectionPlanRecord
    prefer: str
    selected: str
    leader: str = Field(description="The best on val; another one than selected by --prefer.")
    not_separable: list[str] = Field(
        default=[], description="Trained models that val does not tell apart from the leader, lightest first."
    )
    ending: Literal["budget", "all trained", "limit of val", "val tells nothing"] = Field(
        description="Why nothing more was trained."
    )
    candidates: list[CandidateRecord] = Field(description="The selected one first, then those trained, then in order.")
    expected_regret: float | None = Field(
        default=None,
        description="Of the selected model beside the best of those trained, by the error of val; at most what is left to gain. "
        "None: one was trained, or the error is not known.",
    )
    next_models: list[str] = Field(default=[], description="What another hour would train.")
    selection_metric: str = Field(description="On val.")
    primary_metric: str
    metrics: list[MetricRecord] = Field(description="Of the selected model on test, over all classes.")
    of_classes: list[MetricRecord] = Field(
        default=[], exclude_if=_is_nothing, description="Its sensitivities and specificities of single classes on test."
    )
    confusion: ConfusionRecord | None = Field(default=None, exclude_if=_is_nothing, description="Of its answers on test.")
    calibration: CalibrationRecord | None = Field(
        default=None, exclude_if=_is_nothing, description="Of its probabilities on test."
    )
    model: TunedModelRecord
    training: str = Field(description="Run directory of the selected model, in that of the selection.")
    saved_model: str | None = None
    booked_seconds: float
    seconds: float = Field(description="Of all trainings in this attempt.")
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
    def trained(self) -> list[CandidateRecord]:
        """Models whose training came to its end."""
        return [row for row in self.candidates if row.state in ("selected", "trained")]

    @property
    def share_of_all(self) -> float | None:
        """Booked seconds over those of tuning all models."""
        return self.booked_seconds / self.plan.seconds_of_all if self.plan.seconds_of_all > 0 else None
