"""How the rows of a data set were divided."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.data.record import SplitRow
from crossgraft.records.base import SCHEMA_VERSION, Count, Record
from crossgraft.types import RecordedTask


class DataSplitRecord(Record):
    """The parts of a data set; the row numbers themselves are in the file of the split. No path and no patient id."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["data_split"] = "data_split"
    name: str
    source: str
    num_images: Count
    task: RecordedTask
    class_names: list[str]
    splits: list[SplitRow] = Field(description="One row per part that has images.")
    split_method: str
    split_fingerprint: str = Field(description="12 hexadecimal digits: equal for equal parts of equal data.")
    seed: int | None = Field(description="None where nothing was drawn.")
    leakage: str
    leakage_checked: bool
    missing: list[str] = Field(default=[], description="Classes without images in a part, one sentence for each part.")
