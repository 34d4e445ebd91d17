"""What ``crossgraft predict`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from crossgraft.data.record import FileCountRecord
from crossgraft.metrics.record import MetricRecord, ThresholdRecord
from crossgraft.records.base import SCHEMA_VERSION, Record, Reference
from crossgraft.records.looks import LooksRecord
from crossgraft.tune.record import TunedModelRecord
from crossgraft.types import RecordedTask


class PredictionRow(Record):
    """What the model says about one image."""

    row: int = Field(description="Number of the image, from 1.")
    name: str | None = Field(default=None, description="Name of the file; in a run directory only with --show-names.")
    predicted: list[str] = Field(description="The most probable class; or every label above its threshold.")
    decision: str = Field(description="With the threshold; 'unreadable' where the image could not be decoded.")
    probabilities: list[float] = Field(description="One per class, after temperature; empty if unreadable.")
    logits: list[float] = []
    certainty: float | None = Field(description="Highest probability; with labels the least distance from 0.5.")
    target: str | None = Field(default=None, description="The true class, where it is known.")
    seen: bool | None = Field(
        default=None,
        description="Whether the model has learned from this image, or a head from its group; None: not known, or unreadable.",
    )
    reason: str | None = Field(default=None, description="Why there is no prediction.")

    def probability_of_decision(self, class_names: Sequence[str]) -> float | None:
        """The probability of the decided class; with several labels per image, the highest of all."""
        if self.decision in class_names and self.probabilities:
            return self.probabilities[class_names.index(self.decision)]
        return max(self.probabilities, default=None)


class PredictionRecord(Record):
    """Everything that ``crossgraft predict``, or ``fewshot`` of a support set, found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["prediction"] = "prediction"
    model: TunedModelRecord
    model_trained_on: str = Field(
        description="Name of the data that the model was fine-tuned on, or that the head learned from."
    )
    model_fingerprint: str = Field(description="Of the fine-tuned weights.")
    head: str | None = Field(
        default=None, description="Few-shot head, as it is written, on the frozen model; None: a fine-tuned model."
    )
    num_support: int | None = Field(default=None, description="Labelled images that the head learned from.")
    task: RecordedTask
    class_names: list[str]
    data_name: str
    num_images: int
    num_unreadable: int = 0
    rows_used: str = Field(default="", description="Which rows of the data, in words; empty: not recorded.")
    is_of_run: bool = Field(
        default=False,
        description="Whether the images, but for those that had a part in the fine-tuning, are its test images, or there are no "
        "others.",
    )
    num_seen: int | None = Field(
        default=None,
        description="Images that the model has learned from; they are measured only where there are no others. None: not known.",
    )
    files: list[FileCountRecord] = Field(
        default=[], description="All visible files below the images by kind and class; empty where they are no files."
    )
    temperature: float | None
    thresholds: list[ThresholdRecord] = []
    rows: list[PredictionRow]
    predicted_counts: dict[str, int] = Field(default={}, description="Images of each predicted class or label.")
    most_certain: list[int] = Field(default=[], description="Numbers of images, the most certain first.")
    least_certain: list[int] = Field(default=[], description="Numbers of images, the least certain first.")
    metrics: list[MetricRecord] = Field(default=[], description="Measured here, where true classes are known.")
    looks: LooksRecord | None = Field(
        default=None,
        description="Place among the looks at these images; None: nothing was measured, the model had seen them, or looks were "
        "not counted.",
    )
    training_metrics: list[MetricRecord] = Field(default=[], description="As stored with the model.")
    images_per_second: float | None = None
    seconds: float = 0.0
    warnings: list[str] = []
    notes: list[str] = []
    references: list[Reference] = []
