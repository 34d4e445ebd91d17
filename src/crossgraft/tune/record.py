"""What ``crossgraft tune`` writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field, model_serializer, model_validator

from crossgraft.data.record import DatasetRecord, SplitRow
from crossgraft.edit.record import MayBeEdited
from crossgraft.metrics.record import CalibrationRecord, ConfusionRecord, MetricRecord, RocRecord, ThresholdRecord
from crossgraft.models.record import PreprocessingRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Record, Reference
from crossgraft.records.looks import LooksRecord
from crossgraft.tune.epochs_record import EpochRow
from crossgraft.tune.gradients_record import GradientNormsRecord
from crossgraft.tune.keeping_record import BatchNormRecord, KeepRecord
from crossgraft.tune.mistakes_record import MistakesRecord
from crossgraft.tune.plugins_record import PluginRecord


class PlanRow(Record):
    """Parameters that are trained, or frozen, for one and the same reason."""

    trained: bool
    reason: str
    num_parameters: int
    num_tensors: int
    names: list[str] = Field(description="Names of the tensors, at most the first and the last three.")


_ADDED = ("added_seconds_per_step", "added_bytes", "grid")


class PlanRecord(Record):
    """What will be trained, how long, and at what cost; made before the first step."""

    rows: list[PlanRow] = Field(description="Trained first, the largest first.")
    num_trained: int = Field(description="Parameters of the network that are trained, its adapters among them.")
    num_frozen: int
    num_own_parameters: int = Field(
        default=0, description="Parameters of regularisers, trained beside the network and not counted with it."
    )
    added_seconds_per_step: float | None = Field(
        default=None,
        description="What those regularisers take of a step; None: there are none, or it was not measured.",
    )
    added_bytes: int | None = Field(default=None, description="What they take of the memory.")
    num_adapter_parameters: int = Field(default=0, description="Of adapters, which are among the trained ones.")
    adapter_bytes: int = Field(default=0, description="Of those parameters alone, as they are saved.")
    num_train: int | None = Field(default=None, description="Training images of one job.")
    num_val: int | None = Field(default=None, description="Images that pick the epoch, of one job.")
    num_jobs: int = Field(description="Folds × grid points; with --keep × the most trainings that the search takes.")
    seeks_factor: bool = Field(default=False, description="Whether --keep looks for a factor, so that fewer may do.")
    grid: list[dict[str, float | int]] | None = Field(
        default=None,
        description="Setting → value at each point; None without a grid. Below, epochs, steps of an epoch and "
        "batch are those of the longest training.",
    )
    epochs: int = Field(description="At most; early stopping may end before.")
    steps_per_epoch: int
    num_steps: int = Field(description="Of all jobs, at most.")
    batch_size: int
    settings: dict[str, str] = Field(description="Every choice in force, with what was chosen automatically.")
    seconds_per_step: float | None
    expected_seconds: float | None = Field(description="Of all jobs, at most.")
    expected_reason: str | None = Field(default=None, description="Why there is no time, or how it was measured.")
    peak_bytes: int | None
    peak_reason: str | None = None
    notes: list[str] = []

    @model_serializer(mode="wrap")
    def _without_what_nothing_was_added_to(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        """Where there is no grid, and no regulariser learns something of its own, a plan is as before there were these fields."""
        written = write(self)
        return {name: value for name, value in written.items() if value is not None or name not in _ADDED}

    @property
    def settings_line(self) -> str:
        """What is in the slots, in one line."""
        slots = ("method", "regularizer", "batch transform", "augmentation", "loss")
        return ", ".join(f"{slot} {self.settings[slot]}" for slot in slots if slot in self.settings)


class GridPointRecord(Record):
    """One point of the grid in one fold: what was tried, and what selection saw of it."""

    job: str
    fold: int | None
    values: dict[str, float | int | str] = Field(description="Setting → value; empty without a grid.")
    state: Literal["done", "failed"]
    reason: str | None = Field(default=None, description="Why it failed.")
    val_metric: float | None = None
    val_loss: float | None = None
    best_epoch: int | None = None
    num_epochs: int | None = None
    stopped_early: bool = False
    picked: bool = False
    seconds: float = 0.0


class FoldRecord(Record):
    """One fold: its rows, and what its picked model gave on rows that selection did not see."""

    fold: int
    num_train: int
    num_val: int
    num_test: int
    num_groups: int | None
    picked: dict[str, float | int | str] = {}
    best_epoch: int | None
    val_metric: float | None
    test_metric: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


class TunedModelRecord(Record):
    """The pretrained network that was fine-tuned."""

    name: str
    architecture: str
    source: str
    family: str
    licence: str | None
    num_parameters: int = Field(description="With the new head.")
    num_features: int
    num_outputs: int
    weights_fingerprint: str = Field(description="Of the pretrained weights.")
    preprocessing: PreprocessingRecord
    from_scratch: bool = False


class TuningRecord(MayBeEdited):
    """Everything that ``crossgraft tune`` found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["tuning"] = "tuning"
    dataset: DatasetRecord
    splits: list[SplitRow]
    leakage: str = Field(description="Whether one patient may be in two parts, in a sentence.")
    leakage_checked: bool
    model: TunedModelRecord
    plugins: list[PluginRecord]
    plan: PlanRecord
    selection_rule: str = Field(description="How the model was picked, in words, with the metric.")
    selection_metric: str
    grid: list[GridPointRecord] = Field(description="One row per job.")
    folds: list[FoldRecord] = []
    history: list[EpochRow]
    metrics: list[MetricRecord]
    primary_metric: str = Field(description="The metric that headlines are about.")
    confusion: ConfusionRecord | None = None
    mistakes: MistakesRecord | None = Field(default=None, description="None: written by an earlier version.")
    roc: list[RocRecord] = []
    calibration: CalibrationRecord | None = None
    calibration_reason: str | None = Field(default=None, description="Why there is no calibration.")
    thresholds: list[ThresholdRecord] = []
    similarity: dict[str, float] = Field(
        default={},
        description="How alike test features before and after are: 'cka', 'cka_debiased'. Where the network has BatchNorm, "
        "with the ending '_adapted' to the pretrained weights with statistics of the training images, and with "
        "'_untouched' of those to the pretrained network: what moved statistics do without any training.",
    )
    gradient_norms: list[GradientNormsRecord] = Field(
        default=[], description="One per training that was picked; empty without --log-gradient-norms."
    )
    batch_norm: BatchNormRecord | None = Field(default=None, description="None: written by an earlier version.")
    keep: KeepRecord | None = Field(default=None, description="None: no similarity was asked for (--keep).")
    looks: LooksRecord | None = Field(
        default=None, description="How often these test images were looked at; None: not counted (--no-ledger)."
    )
    saved_model: str | None = Field(default=None, description="Folder in the run directory.")
    saved_model_reason: str | None = None
    seconds: float
    num_processes: int = 1
    devices: list[str] = []
    precision: str = "32"
    checks: list[CheckRecord] = []
    warnings: list[str] = []
    notes: list[str] = []
    references: list[Reference] = []

    @model_validator(mode="after")
    def _one_count_per_class(self) -> TuningRecord:
        for number, split in enumerate(self.splits):
            if len(split.class_counts) != len(self.dataset.class_names):
                raise ValueError(f"splits.{number}.class_counts needs one count per name in class_names of the dataset")
        return self

    def metric(self, name: str, *, split: str | None = None) -> MetricRecord | None:
        """The metric called ``name`` over all classes and images; of ``split``, or of the first that has it."""
        for row in self.metrics:
            overall = row.class_name is None and row.attribute is None
            if row.metric == name and overall and split in (None, row.split):
                return row
        return None
