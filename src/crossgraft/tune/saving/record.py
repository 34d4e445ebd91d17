"""``model.json``: what a saved model is, beside its weights."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.data.record import SplitRow
from crossgraft.edit.record import MayBeEdited
from crossgraft.metrics.record import MetricRecord, ThresholdRecord
from crossgraft.records.base import SCHEMA_VERSION, Record, Reference
from crossgraft.tune.record import BatchNormRecord, KeepRecord, PluginRecord, TunedModelRecord
from crossgraft.types import RecordedTask


class TrainingDataRecord(MayBeEdited):
    """The images that a model was fine-tuned on; names only, no path and no patient."""

    name: str
    source: str
    fingerprint: str
    num_images: int
    num_groups: int | None
    group_column: str | None
    split_method: str
    leakage: str = Field(description="Whether one patient may be in two parts, in a sentence.")
    splits: list[SplitRow] = []
    reading: list[str] = Field(default=[], description="How files of scanners were read, in words.")
    window: str | None = Field(default=None, description="As --window took it; predictions use the same.")
    slices: str | None = Field(default=None, description="As --slices took it; predictions use the same.")

    @property
    def fingerprints(self) -> tuple[str, ...]:
        """Fingerprint of these images as the model saw them, and the one before they were edited."""
        return (self.fingerprint,) if self.edits is None else (self.fingerprint, self.edits.unedited_fingerprint)


class SavedModelRecord(Record):
    """Everything about a saved model but its weights; enough to build it, to use it and to judge it."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["model"] = "model"
    crossgraft_version: str
    recipe: dict[str, object] = Field(description="How the network is built without its pretrained weights.")
    model: TunedModelRecord
    task: RecordedTask
    class_names: list[str] = Field(description="In the order of the outputs.")
    temperature: float | None = Field(description="Logits are divided by it; None: it was not fitted.")
    temperature_reason: str | None = Field(default=None, description="How it was fitted, or why it was not.")
    thresholds: list[ThresholdRecord] = Field(
        default=[], description="Of one class of two, or of each label; empty: the most probable class is decided for."
    )
    trained_on: TrainingDataRecord
    plugins: list[PluginRecord] = Field(default=[], description="Method, regularisers, batch transforms …")
    selection_rule: str
    primary_metric: str
    metrics: list[MetricRecord] = Field(default=[], description="Over all classes and images.")
    unsound: list[str] = Field(default=[], description="What was found in the data that makes the metrics wrong.")
    similarity: dict[str, float] = Field(default={}, description="How alike features before and after are; empty: not measured.")
    batch_norm: BatchNormRecord | None = Field(default=None, description="None: written by an earlier version.")
    keep: KeepRecord | None = Field(default=None, description="None: no similarity was asked for.")
    seed: int
    training_key: str = Field(
        default="", description="Of the training, as the ledger knows it; empty: written by an earlier version."
    )
    test_fingerprint: str = Field(
        default="", description="Of the test images, as the ledger knows them; empty: written by an earlier version."
    )
    references: list[Reference] = []
    weights_file: str = "weights.safetensors"
    weights_sha256: str = Field(default="", description="Of the file of weights.")
    weights_fingerprint: str = Field(default="", description="Of names, shapes and values of the weights.")
    checksums: dict[str, str] = Field(default={}, description="SHA-256 of each field, so that a change has a name.")

    @property
    def look_key(self) -> str:
        """What names the model in the ledger of looks: its training, whatever was read back of it."""
        return self.training_key or self.weights_fingerprint
