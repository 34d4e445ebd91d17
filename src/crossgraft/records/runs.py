"""``run.json``: how a run directory was made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import SCHEMA_VERSION, Record, StageRecord


class RunRecord(Record):
    """``run.json``: how a run directory was made, enough to make it again."""

    schema_version: int = SCHEMA_VERSION
    command: str
    command_line: str = Field(description="What to type to get the same run.")
    as_typed: str | None = Field(
        default=None, description="The same as a command line, where the run was made by a call in Python."
    )
    crossgraft_version: str
    config: dict[str, object]
    config_hash: str
    seed: int
    versions: dict[str, str]
    machine: dict[str, str]
    data_fingerprint: str | None = None
    weights_fingerprints: dict[str, str] = {}
    started_at: str
    finished_at: str | None = None
    state: Literal["running", "done", "interrupted", "failed"] = "running"
    stages: list[StageRecord] = []
