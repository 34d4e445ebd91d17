"""What ``crossgraft fewshot`` writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import SCHEMA_VERSION, Count, Record, Reference, Share
from crossgraft.records.checks import CheckRecord
from crossgraft.records.data import DatasetRecord
from crossgraft.records.models import ModelRecord


class EpisodesPart(Record):
    """A few episodes, kept so that a stopped run goes on."""

    key: str = Field(description="Hash of everything that decides the numbers.")
    accuracies: list[list[Share]] = Field(description="By episode and head.")
    seconds: list[float] = Field(description="Mean time of a head, for fit and predict.")
    num_ways: list[Count]
    num_support: list[Count]
    num_query: list[Count]
    warnings: dict[str, Count] = Field(description="What heads warned of → in how many episodes.")


class HeadRow(Record):
    """One head on all episodes."""

    head: str = Field(description="As it was written, with its options.")
    title: str
    accuracy: Share = Field(description="Mean over episodes of the share of queries that are right.")
    half_width: float = Field(description="Half of the width of its interval of 95 %, over episodes.")
    difference: float | None = Field(description="To the baseline, paired by episode; None for itself.")
    difference_half_width: float | None = None
    rank: float = Field(description="Heads within each other's intervals share one (Meta-Dataset's leaderboard).")
    plain_rank: float = Field(description="Only equal means share one.")
    seconds: float = Field(description="Mean time of an episode, for fit and predict, on one thread.")
    warnings: dict[str, Count] = {}


class SizeRow(Record):
    """What the sampler drew: a size over the episodes."""

    name: str
    least: Count
    mean: float
    most: Count


class FewshotRecord(Record):
    """Heads on the same episodes of one data set."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["fewshot"] = "fewshot"
    dataset: DatasetRecord
    model: ModelRecord
    heads: list[HeadRow] = Field(description="Best first.")
    baseline: str
    sampler: str = Field(description="As it was written, with its options.")
    sampler_title: str
    num_episodes: Count
    sizes: list[SizeRow]
    groups_apart: bool = Field(description="Whether support and queries share no group.")
    base_classes: list[str] = []
    checks: list[CheckRecord]
    references: list[Reference]

    def head(self, name: str) -> HeadRow:
        """The row of one head."""
        return next(row for row in self.heads if row.head == name)
