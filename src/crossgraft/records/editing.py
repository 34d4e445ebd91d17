"""What ``crossgraft edit`` writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import SCHEMA_VERSION, Count, Record, Reference, Share
from crossgraft.records.data import DatasetRecord


class EditRow(Record):
    """One edit, in grey levels of 8 bits whatever the type of the images."""

    edit: str = Field(description="As it was written, with its options.")
    title: str
    leaf: str | None = Field(description="Place in MICCAT; None for an edit that is no confounder.")
    num_images: Count = Field(description="Different images that it was done to.")
    rms: float = Field(description="Root mean square of what it changed.")
    share_changed: Share
    psnr: float = Field(description="Peak signal-to-noise ratio in dB.")


class EditedClassRow(Record):
    """Images of one class."""

    class_name: str
    num_images: Count
    num_edited: Count
    merged: str | None = Field(default=None, description="The coarser class; None: classes stay.")


class EditRecord(Record):
    """A data set that was written again with edited images."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["edit"] = "edit"
    dataset: DatasetRecord = Field(description="The data as they were.")
    edits: list[EditRow]
    classes: list[EditedClassRow]
    num_edited: Count
    share: Share
    strength: float
    unit: str
    seed: int
    fingerprint: str = Field(description="Of edited images under the labels and groups that they had.")
    table: str = Field(description="Name of the table of labels in the run directory.")
    references: list[Reference]
