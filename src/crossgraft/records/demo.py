"""What ``crossgraft demo`` writes around its ranking."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import SCHEMA_VERSION, Record
from crossgraft.records.ranking import RankingRecord


class SplitComparison(Record):
    """Accuracy of one probe under two ways to split the same images."""

    probe: str
    shuffled_accuracy: float
    shuffled_low: float
    shuffled_high: float
    grouped_accuracy: float
    grouped_low: float
    grouped_high: float
    explanation: str


class FineTunedRow(Record):
    """Test accuracy of one model after real fine-tuning."""

    model: str
    num_test_images: int
    linear_accuracy: float
    linear_low: float
    linear_high: float
    full_accuracy: float
    full_low: float
    full_high: float
    seeds: int


class DemoRecord(Record):
    """What the demo shows around its ranking."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["demo"] = "demo"
    split_comparison: SplitComparison
    fine_tuned: list[FineTunedRow]
    limits: list[str] = Field(description="What the demo can not show, in sentences.")
    ranking: RankingRecord
