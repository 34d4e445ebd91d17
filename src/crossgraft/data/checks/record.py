"""What was looked at, and what was found: ``crossgraft check``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, model_validator

from crossgraft.data.record import DatasetRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, Record, Reference

IDENTICAL, IDENTICAL_ACROSS = "Identical images", "Identical images across splits"
"""Titles of two checks: of all rows, or of one split; and of several splits."""


def copies_are_known(checks: Iterable[CheckRecord]) -> bool:
    """Whether a copy of an image may be on the other side of a split, so that its test images cannot be called new."""
    return any(check.title in (IDENTICAL, IDENTICAL_ACROSS) and check.severity in ("unsound", "warning") for check in checks)


class FindingRecord(CheckRecord):
    """What one check of the data found, with the images that it is about."""

    check: str = Field(description="Name of the check, for programs.")
    advice: str = Field(default="", description="What to do about it.")
    num_groups: int = Field(default=0, description="How many images, or groups of images, it is about.")
    images: list[list[int]] = Field(
        default=[], description="Row numbers, from 1, of images that belong together; at most 1000 groups are listed."
    )
    reasons: list[str] = Field(default=[], description="What is wrong with each of the images, where that differs; else empty.")


class ColumnRecord(Record):
    """How much of the label one column of the data tells, measured on images that were held out."""

    column: str
    label: str | None = Field(description="With several labels per image: the one it tells most about.")
    balanced_accuracy: float = Field(description="Mean over the classes of the share of images told right.")
    chance: float = Field(description="The same for guessing: 1 / number of classes.")


class SplitDifferenceRecord(Record):
    """How much one fact of the images differs between train and another split that came with the data."""

    split: str = Field(description="Split that is compared with train.")
    fact: str
    effect: float = Field(
        description="0 (alike) to 1: the largest gap of the distribution functions of numbers, the share of rows that would need "
        "another value otherwise; with several labels per image the largest difference of one label's share."
    )
    p_value: float = Field(description="Of a permutation test of whole groups, adjusted by Holm over all facts and splits.")
    found: str = Field(description="Median, or the share that differs most, in both splits.")
    matters: bool = Field(description="Whether it is more than chance, and large enough for a warning.")


class DataCheckRecord(Record):
    """Everything that ``crossgraft check`` found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["data_check"] = "data_check"
    dataset: DatasetRecord
    split_names: list[str] = Field(description="Empty when the data have no split and none was asked for.")
    split_counts: list[list[Count]] = Field(description="Images of each class in each split, in the order of the names.")
    is_sound: bool
    verdict: str
    findings: list[FindingRecord] = Field(description="Most severe first.")
    columns: list[ColumnRecord] = []
    split_differences: list[SplitDifferenceRecord] = Field(
        default=[], description="Empty where there is no split that came with the data, or too few images in it."
    )
    image_names: dict[int, str] = Field(default={}, description="Names of listed images, only with --show-names.")
    references: list[Reference] = []

    @model_validator(mode="after")
    def _one_count_per_split_and_class(self) -> DataCheckRecord:
        lengths = [len(counts) for counts in self.split_counts]
        if lengths != [len(self.dataset.class_names)] * len(self.split_names):
            raise ValueError("split_counts needs one row per split of split_names, with one count per class")
        return self
