"""What is recorded of published results evaluated again."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.rank.published.record import AnswerRecord, CitedTable, ScenarioRecord, SlipRecord
from crossgraft.records.base import SCHEMA_VERSION, Record, Reference
from crossgraft.select.replay.record import ReplayRecord


class PublishedRecord(Record):
    """Published results evaluated again, or a user's own table evaluated in the same way."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["published"] = "published"
    name: str
    title: str
    source: str
    scenarios: list[ScenarioRecord]
    cited: list[CitedTable] = []
    slips: list[SlipRecord] = []
    answers: list[AnswerRecord] = []
    replays: list[ReplayRecord] = Field(default=[], description="What select would have handed over, table by table.")
    references: list[Reference] = []
