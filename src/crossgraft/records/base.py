"""What every record is, and what all commands write."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION = 1
"""Bumped when a field changes its meaning."""


class Record(BaseModel):
    """Base of all records: immutable, and unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="strings")


class Reference(Record):
    """A paper behind a number."""

    key: str
    text: str


class StageRecord(Record):
    """Seconds that one stage took."""

    name: str
    seconds: float
