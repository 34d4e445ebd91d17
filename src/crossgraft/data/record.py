"""The images that a command used."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from crossgraft.records.base import SCHEMA_VERSION, Count, Record
from crossgraft.types import RecordedTask


class FileCountRecord(Record):
    """Files of one kind in one class of the data."""

    kind: str = Field(description="Extension, or what a folder is called that is passed over whole.")
    class_name: str = Field(default="", description="Class, or its folder; empty: in none, in several, or not known.")
    files: Count
    read: bool = Field(description="Whether these files are images of the data.")
    reason: str = Field(default="", description="Why they are not read.")


class DatasetRecord(Record):
    """The images that a command used. Names only: no absolute path, no patient id."""

    name: str
    source: str = Field(description="Kind of source: image_folder, csv_table, npz_file, digits …")
    num_images: Count
    class_names: list[str]
    class_counts: list[Count]
    rows_used: str = Field(description="For example 'split train' or 'all rows (no split given)'.")
    split_method: str = Field(description="How the split was made, in words.")
    split_fingerprint: str | None = Field(
        default=None, description="12 hexadecimal digits: equal for equal parts of equal data; None without a split."
    )
    group_column: str | None
    num_groups: int | None
    fingerprint: str
    image_kinds: dict[str, int] = Field(description="Size, channels and bit depth → number of images.")
    reading: list[str] = Field(default=[], description="How files of scanners were read: window, slices.")
    files: list[FileCountRecord] = Field(
        default=[], description="All visible files of the data by kind and class; empty where the data are no files."
    )
    task: RecordedTask = "multi-class"
    ordinal: bool = Field(default=False, description="The user said that the order of the classes means something.")
    num_skipped_unreadable: int = Field(default=0, description="Images left out by --skip-unreadable.")
    skipped_unreadable: list[str] = Field(default=[], description="Their names, only with --show-names.")

    @model_validator(mode="after")
    def _one_count_per_class(self) -> DatasetRecord:
        if len(self.class_counts) != len(self.class_names):
            raise ValueError(f"class_counts has {len(self.class_counts)} counts for {len(self.class_names)} class_names")
        return self


class SplitRow(Record):
    """The rows of one part of the data."""

    name: str
    num_images: Count
    num_groups: int | None
    class_counts: list[Count] = Field(description="Images of each class (or label).")
    origin: str = Field(description="Where the part comes from, for example 'given with the data'.")


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
