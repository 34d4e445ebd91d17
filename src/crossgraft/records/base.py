"""What every record is, and what all commands write."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
"""Bumped when a field changes its meaning."""

Count = Annotated[int, Field(ge=0, le=2**53)]
"""Number of images, groups …; at most as large as a plot can draw it exactly."""
Share = Annotated[float, Field(ge=0, le=1)]


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


Severity = Literal["unsound", "warning", "notice", "passed", "not assessed"]


class CheckRecord(Record):
    """One thing that was looked at, and what was found."""

    title: str
    severity: Severity
    text: str


class Thumbnail(Record):
    """One small image for the report, at most 96 pixels a side."""

    class_name: str = Field(default="", description="What it is an example of.")
    row: int | None = Field(default=None, description="Number of the image, from 1, where it is shown for itself.")
    png_base64: str
