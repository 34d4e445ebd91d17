"""What ``crossgraft list confounders --data`` shows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord
from crossgraft.records.base import SCHEMA_VERSION, Count, Record, Reference, Share


class ShownImageRow(Record):
    """One image on the sheets."""

    number: Count = Field(description="Among all images of the data, from 1.")
    class_names: list[str]


class ContactSheetRow(Record):
    """One edit on a few images, in grey levels of 8 bits whatever their type."""

    edit: str = Field(description="Its name; all options are at their defaults.")
    title: str
    place: str = Field(description="Place in MICCAT, or that it takes cues away.")
    scope: str = Field(description="What it touches.")
    options: str = Field(description="Options with defaults and units.")
    sheet: str | None = Field(
        pattern=r"^sheets/[^/\\:]+\.png$", description="Name of its picture in the run directory; the page links to it."
    )
    num_images: Count = Field(description="Images that it can be put into.")
    rms: float | None = Field(
        description="Root mean square of what it changed; None where it can be put into no image."
    )
    share_changed: Share | None = Field(description="Share of the samples.")
    psnr: float | None = Field(description="Peak signal-to-noise ratio in dB.")
    share_touched: Share | None = Field(description="Share of the pixels in its mask; None for the whole image.")
    limit: float = Field(description="Grey levels of the full colours in the row of changes.")
    problems: list[str] = Field(description="What kept images from being edited, and warnings.")


class ContactSheetsRecord(Record):
    """Every edit at default options on the same few images."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["contact_sheets"] = "contact_sheets"
    dataset: DatasetRecord = Field(description="The images on the sheets.")
    images: list[ShownImageRow]
    sheets: list[ContactSheetRow]
    seed: int
    references: list[Reference]
