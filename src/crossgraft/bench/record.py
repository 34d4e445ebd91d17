"""What ``crossgraft bench`` writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.rank.published.record import FriedmanRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, Record, Reference


class FactorRecord(Record):
    """What jobs differ in."""

    name: str
    levels: list[str]


class CellRecord(Record):
    """Jobs that differ in their seeds alone."""

    levels: dict[str, str] = Field(description="Factor → level.")
    num_done: Count
    num_failed: Count
    value: float | None = Field(default=None, description="Of the compared number, its mean over seeds.")
    low: float | None = None
    high: float | None = None
    interval_of: Literal["seeds", "one job"] | None = Field(default=None, description="What the 95 % interval says of.")
    no_interval_reason: str | None = None


class LevelDifference(Record):
    """One level of the compared factor minus the first one, paired in everything else."""

    level: str
    reference: str
    value: float | None
    low: float | None = None
    high: float | None = None
    num_pairs: Count = Field(description="Targets, each averaged over all else; or seeds, where there is one target.")
    reason: str | None = Field(default=None, description="Why there is no value, or no interval.")


class FailureRecord(Record):
    """A job that failed."""

    job: str = Field(description="Name of its folder in `jobs`.")
    levels: dict[str, str]
    reason: str


class StudyRecord(Record):
    """Everything about a study; ``report.json`` is this record, and ``results.csv`` has every number of every job."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["study"] = "study"
    title: str
    command: str
    factors: list[FactorRecord]
    num_jobs: Count
    num_done: Count
    num_failed: Count
    seconds: float = Field(description="Of all jobs that are done, one after the other.")
    peak_mb: float | None = Field(default=None, description="Memory of a job at most, in megabytes; None: not known of any.")
    metric: str | None = Field(description="The number of a job that is compared.")
    larger_is_better: bool | None = Field(description="None: nobody said so.")
    compare: str | None = Field(description="The factor whose levels are compared.")
    over: str | None = Field(description="The factor of the targets that they are compared over.")
    cells: list[CellRecord]
    differences: list[LevelDifference] = []
    friedman: FriedmanRecord | None = None
    no_friedman_reason: str | None = None
    failures: list[FailureRecord] = []
    checks: list[CheckRecord] = []
    references: list[Reference] = []


class StudyStateRecord(Record):
    """What is to be done and what is done already; nothing was done for it."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["study-state"] = "study-state"
    title: str
    num_jobs: Count
    num_done: Count
    num_failed: Count
    num_running: Count
    num_stopped: Count = Field(description="Begun, and going on when the command is typed again.")
    num_missing: Count
    seconds_per_job: float | None = Field(description="Expected mean of those that are left; None: unknown.")
    seconds_left: float | None = Field(description="Of all that is left, with this many jobs at a time.")
    num_bytes_per_job: int | None = Field(description="On the disk; mean of those that are done.")
    workers: int
    failures: list[FailureRecord] = []
