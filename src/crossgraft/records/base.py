"""What every record is, and what all commands write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_serializer

SCHEMA_VERSION = 1
"""Bumped when a field changes its meaning."""

Count = Annotated[int, Field(ge=0, le=2**53)]
"""Number of images, groups …; at most as large as a plot can draw it exactly."""
Share = Annotated[float, Field(ge=0, le=1)]


class Record(BaseModel):
    """Base of all records: immutable, and unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="strings")


class SparseRecord(Record):
    """A record that is written without those of its fields which say nothing.

    Attributes:
        sparse: Fields that are left out at their defaults, so that files of before there were these fields stay as they were.
    """

    sparse: ClassVar[frozenset[str]]

    @model_serializer(mode="wrap")
    def _without_nothing(self, write: Callable[[Any], Any]) -> dict[str, Any]:
        silent = {name: type(self).model_fields[name].get_default(call_default_factory=True) for name in self.sparse}
        return {name: value for name, value in write(self).items() if name not in silent or value != silent[name]}


class Reference(Record):
    """A paper behind a number."""

    key: str
    text: str


class StageRecord(Record):
    """Seconds that one stage took."""

    name: str
    seconds: float


Severity = Literal["unsound", "warning", "notice", "passed", "not assessed"]
MOST_SEVERE_FIRST: tuple[Severity, ...] = ("unsound", "warning", "notice", "not assessed", "passed")


class CheckRecord(Record):
    """One thing that was looked at, and what was found."""

    title: str
    severity: Severity
    text: str


class ImageAnswer(Record):
    """What one model said of an image."""

    model: str = Field(default="", description="Its name, where there are several.")
    decision: str
    certainty: float = Field(ge=0.0, allow_inf_nan=False, description="How sure it was: see the task.")
    is_right: bool | None = Field(default=None, description="None: the truth is not known.")


class Thumbnail(Record):
    """One small image for the report, at most 96 pixels a side: a PNG file, or a JPEG file where that is smaller."""

    class_name: str = Field(default="", description="What it is an example of.")
    row: int | None = Field(default=None, description="Number of the image, from 1, where it is shown for itself.")
    png_base64: str = ""
    jpeg_base64: str = ""
    split: str = Field(default="", description="The part of the data that it is in, for an image that was answered.")
    target: str | None = Field(default=None, description="Its true class, or all its labels.")
    group: int | None = Field(default=None, description="Number of its group (patient), from 1, in the order of the data.")
    answers: list[ImageAnswer] = Field(default=[], description="One per model; empty: it is shown for itself.")
    distance: float | None = Field(
        default=None, description="From the mean picture of its class, in grey levels of 255; None: it is a usual one."
    )
    is_far: bool = Field(default=False, description="Whether that is far beyond the distances of the others.")

    @property
    def uri(self) -> str:
        """The image as a ``data:`` address."""
        kind, content = ("jpeg", self.jpeg_base64) if self.jpeg_base64 else ("png", self.png_base64)
        return f"data:image/{kind};base64,{content}"


class Look(Record):
    """One model measured on the test images of a data set. Fingerprints only: no name, no path, no result."""

    test: str = Field(description="Fingerprint of the test images with labels, whatever their order and their groups.")
    measured: str = Field(description="Fingerprint of what was measured: the same training is the same look.")
    command: str = Field(description="Name of the command that measured it.")
    is_result: bool = Field(
        default=True, description="Whether it says how good the model is, so that the best of several can be picked by it."
    )

    @property
    def key(self) -> tuple[str, str]:
        """What makes two looks the same."""
        return self.test, self.measured


class LooksRecord(Record):
    """The place of a result among all results on the same test images that this user has seen."""

    number: Count = Field(description="1 for the first look at these test images.")
    by_command: dict[str, int] = Field(description="Command → number of looks, this one and all before it.")
    num_results: int | None = Field(
        default=None, description="Those that say how good a model is; None in older reports: all of them."
    )
    optimism: float | None = Field(
        description="About how far the best of as many equally good models lies above its true value, in units of the "
        "primary metric, if errors are independent; None without an interval."
    )


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
