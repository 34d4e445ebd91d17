"""What is done to images before anything else sees them: what ``crossgraft edit`` writes, and what ``tune`` says of it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord
from crossgraft.records.base import SCHEMA_VERSION, Count, Record, Reference, Share, SparseRecord
from crossgraft.report.tables import Cell, Shown, whole, words
from crossgraft.words.formatting import NumberFormat, small_percent


def _changed(share: float) -> Cell:
    return words(small_percent(share))


def _share(share: float | None) -> Cell:
    return words(None) if share is None else Cell(small_percent(share), (share,))


NumImages = Annotated[Count, Shown("Images", whole)]
NumEdited = Annotated[Count, Shown("Edited", whole)]
Rms = Shown("rms", NumberFormat(decimals=2))
Psnr = Shown("PSNR, dB", NumberFormat(decimals=1))


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
    num_images: NumImages = Field(description="Images that it can be put into.")
    rms: Annotated[float | None, Rms] = Field(
        description="Root mean square of what it changed; None where it can be put into no image."
    )
    share_changed: Annotated[Share | None, Shown("Changed", _share)] = Field(description="Share of the samples.")
    psnr: Annotated[float | None, Psnr] = Field(description="Peak signal-to-noise ratio in dB.")
    share_touched: Annotated[Share | None, Shown("Mask", _share)] = Field(
        description="Share of the pixels in its mask; None for the whole image."
    )
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


ALL_PARTS = "all"
"""Instead of train, val and test where there are folds: each image is in every part once."""


class EditRow(Record):
    """One edit, in grey levels of 8 bits whatever the type of the images."""

    edit: Annotated[str, Shown("Edit")] = Field(description="As it was written, with its options.")
    title: str
    leaf: str | None = Field(description="Place in MICCAT; None for an edit that is no confounder.")
    num_images: NumImages = Field(description="Different images that it was done to.")
    rms: Annotated[float, Rms] = Field(description="Root mean square of what it changed.")
    share_changed: Annotated[Share, Shown("Changed", _changed)]
    psnr: Annotated[float, Psnr] = Field(description="Peak signal-to-noise ratio in dB.")


class EditedClassRow(Record):
    """Images of one class."""

    class_name: Annotated[str, Shown("Class")]
    num_images: NumImages
    num_edited: NumEdited
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


class EditedPartRow(Record):
    """Images of one part of the data."""

    name: Annotated[str, Shown("Part")] = Field(description="train, val or test; with folds 'all'.")
    num_images: NumImages
    num_edited: NumEdited


class EditedImagesRecord(Record):
    """What was done to images before a model saw them, with all that it takes to do it again."""

    edits: list[EditRow]
    parts: list[EditedPartRow]
    chosen_parts: list[str] = Field(description="Those that were to be edited.")
    among: list[str] | None = Field(description="Classes that were to be edited; None: all.")
    share: Share
    strength: float
    unit: Literal["image", "patient"]
    seed: int
    unedited_fingerprint: str = Field(description="Of the same images as they came, with labels and groups.")
    references: list[Reference]

    @property
    def num_edited(self) -> int:
        """Images of all parts."""
        return sum(row.num_edited for row in self.parts)

    @property
    def was_learned_from(self) -> bool:
        """Whether images that an edit changed had a part in training or in picking the model."""
        is_changed = any(row.rms > 0 for row in self.edits)
        return is_changed and any(row.num_edited for row in self.parts if row.name != "test")


class MayBeEdited(SparseRecord):
    """A record about images that may have been edited; where they were not, it is written as before there were edits."""

    sparse: ClassVar[frozenset[str]] = frozenset({"edits"})

    edits: EditedImagesRecord | None = Field(default=None, description="None: images are as they came.")
