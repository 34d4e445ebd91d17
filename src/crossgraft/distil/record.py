"""What ``crossgraft distil`` writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord
from crossgraft.metrics.record import MetricRecord
from crossgraft.models.record import ModelRecord
from crossgraft.records.base import SCHEMA_VERSION, Count, LooksRecord, Record, Reference


class DistilledDomainRecord(Record):
    """One teacher, its images, and what teacher and student are worth on those that neither has learned from."""

    name: str
    images: DatasetRecord = Field(description="All rows of the run of the teacher; the student learned from those of train.")
    num_train: Count
    num_test: Count = Field(description="Test images that the student has not learned from.")
    num_left_out: Count = Field(
        default=0, description="Test images that are training images of another domain, or of a patient there."
    )
    teacher: str = Field(description="Name of the pretrained network that the teacher was fine-tuned from.")
    teacher_fingerprint: str = Field(description="SHA-256 of the fine-tuned weights.")
    weight: float = Field(description="λ: weight of what is distilled beside the cross-entropy, at the first step.")
    primary_metric: str
    teacher_metrics: list[MetricRecord] = Field(description="On test, over all classes.")
    student_metrics: list[MetricRecord] = Field(description="The same of the student with the head of this domain.")
    looks: LooksRecord | None = Field(default=None, description="How often these test images were looked at.")

    @property
    def student(self) -> MetricRecord | None:
        """The metric of headlines, of the student."""
        return next((row for row in self.student_metrics if row.metric == self.primary_metric), None)

    @property
    def taught(self) -> MetricRecord | None:
        """The same of the teacher."""
        return next((row for row in self.teacher_metrics if row.metric == self.primary_metric), None)


class DistilledStepsRecord(Record):
    """Means over some steps, by domain, not weighted."""

    last_step: Count
    cross_entropy: list[float]
    dissimilarity: list[float] = Field(description="1 − CKA of the mapped features and the teacher's.")
    divergence: list[float] = Field(description="KL divergence of the logits at the temperature, without its square.")


class DistillationRecord(Record):
    """Several networks in one."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["distillation"] = "distillation"
    model: ModelRecord = Field(description="The student as it began.")
    domains: list[DistilledDomainRecord]
    history: list[DistilledStepsRecord]
    steps: Count
    batch_size: Count = Field(description="Images of each domain in a step.")
    settings: dict[str, float]
    weights_file: str = Field(description="Name of the file with the backbone that came out.")
    weights_fingerprint: str
    seconds: float
    references: list[Reference]
