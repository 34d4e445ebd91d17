"""What ``crossgraft demo`` found: what each command of its story said, and the verdict on the model."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.audit.record import AuditRecord
from crossgraft.data.record import DatasetRecord
from crossgraft.demo.record import DemoPrediction
from crossgraft.metrics.record import MetricRecord
from crossgraft.rank.record import RankingRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Record, Reference
from crossgraft.select.record import SelectionRecord
from crossgraft.tune.record import MistakesRecord


class StoryStep(Record):
    """One command of the story, and what its page says first."""

    question: str
    command: str = Field(description="What to type to get it again.")
    answer: str
    caveat: str | None = Field(default=None, description="What most limits the answer.")
    folder: str = Field(description="Its run directory, which starts at that of the demo.")


class ConfusedPair(Record):
    """A class that was taken for another one."""

    target: str
    answer: str
    num_images: int


class StoryRecord(Record):
    """Everything of a demo; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["story"] = "story"
    dataset: DatasetRecord
    steps: list[StoryStep]
    model: str
    num_train: int
    num_train_groups: int
    primary: MetricRecord = Field(description="On images of groups that no model was trained on.")
    guess: float | None = Field(description="What guessing gives of it.")
    caveat: str = Field(description="The biggest of all.")
    mistakes: MistakesRecord
    confused: list[ConfusedPair] = Field(description="The most frequent first, at most 3.")
    mistakes_png: list[str] = Field(default=[], description="In the order of the mistakes; empty with --no-images.")
    ranking: RankingRecord | None = Field(default=None, description="None: written by an earlier version.")
    selection: SelectionRecord | None = Field(default=None, description="None: written by an earlier version.")
    audit: AuditRecord | None = Field(default=None, description="None: written by an earlier version.")
    new_images: list[DemoPrediction] = Field(description="One image of each unseen group.")
    not_shown: str = Field(description="What cannot be shown on such images.")
    checks: list[CheckRecord] = []
    references: list[Reference] = []
