"""What ``crossgraft export`` writes beside an exported model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.models.record import PreprocessingRecord
from crossgraft.records.base import SCHEMA_VERSION, Record
from crossgraft.types import RecordedTask


class ExportedModelRecord(Record):
    """``description.json``: all that a program needs to use an exported model; no path and no patient."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["exported_model"] = "exported_model"
    crossgraft_version: str
    name: str = Field(description="Of the pretrained model.")
    architecture: str
    trained_on: str = Field(description="Name of the data that the model was fine-tuned on.")
    task: RecordedTask
    class_names: list[str] = Field(description="In the order of the outputs.")
    input: str = Field(description="What the model takes, in words.")
    output: str = Field(description="What the model gives, in words.")
    preprocessing: PreprocessingRecord
    temperature: float | None = Field(description="Logits are divided by it; None: it was not fitted.")
    thresholds: dict[str, float] = Field(
        default={}, description="From which probability on a class or label is decided for; empty: by the default rule."
    )
    decision: str = Field(description="How probabilities become a decision, in words.")
    licence: str | None = Field(description="Of the pretrained weights, if known.")
    weights_fingerprint: str = Field(description="Of the fine-tuned weights as the run saved them.")
    use: str = "Research use, not a medical device."


class ExportedFileRecord(Record):
    """One file of an export."""

    name: str = Field(description="With the folders in the export that it lies in.")
    num_bytes: int
    sha256: str


class OutputAgreementRecord(Record):
    """How an exported model that was loaded again differs from the classifier it was made of."""

    checked_with: str = Field(description="What loaded the file, with its version.")
    num_images: int = Field(description="Generated images, the same for every model of one input size.")
    batch_sizes: list[int]
    largest_logit_difference: float
    allowed_logit_difference: float = Field(description="1e-5 times the largest logit, at least 1e-5.")
    largest_probability_difference: float | None = Field(description="None: the file gives logits only.")
    allowed_probability_difference: float | None = Field(
        description="The same of logits after the temperature, which is what probabilities are made of."
    )


class ExportRecord(Record):
    """Everything about one export; ``export.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["export"] = "export"
    crossgraft_version: str
    format: str
    loads_with: str = Field(description="timm, torchvision, PyTorch, onnxruntime …")
    how_to_load: str = Field(description="The line of Python that loads it.")
    model: ExportedModelRecord
    files: list[ExportedFileRecord]
    agreement: OutputAgreementRecord
    notes: list[str] = []
    pushed_to: str | None = Field(default=None, description="Where on the hub, if it was asked for.")
    seconds: float
