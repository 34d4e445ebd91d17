"""Columns, and sizes or file types of images, that almost determine the label: a shortcut, or the label itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

import numpy as np

from crossgraft.data.checks._association import held_out_accuracy
from crossgraft.data.checks._finding import finding, listed
from crossgraft.data.checks.record import ColumnRecord, FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.words.formatting import counted, percent

TELLS_ALMOST_ALL = 0.8
"""Share of the way from guessing to always being right from which a warning is given."""
TELLS_MUCH = 0.4
"""The same share for a notice."""

_NAME, _TITLE = "telling_columns", "Columns that tell the label"
_LEAST_IMAGES = 20
_IMAGE_PROPERTIES = "of the image"


def measure_columns(survey: Survey) -> list[ColumnRecord]:
    """How much each column, and each property of the image files, tells about the label; most telling first.

    With several labels per image, the label that a column tells most about counts. Empty for fewer than 20 images.
    """
    if len(survey.readable_rows) < _LEAST_IMAGES:
        return []
    measured = [
        record
        for column, values in {**survey.attributes, **_image_properties(survey)}.items()
        if len(np.unique(values.astype(str))) > 1 and (record := _measure(survey, column, values)) is not None
    ]
    return sorted(measured, key=lambda record: -strength(record))


def strength(column: ColumnRecord) -> float:
    """0 for guessing, 1 for always right."""
    return (column.balanced_accuracy - column.chance) / (1 - column.chance)


def check_label_leakage(survey: Survey, columns: list[ColumnRecord]) -> list[FindingRecord]:
    """Advisory: what ``measure_columns`` found, in words."""
    if not columns:
        return []
    found: list[FindingRecord] = []
    strong = [column for column in columns if strength(column) >= TELLS_ALMOST_ALL]
    telling = [column for column in columns if TELLS_MUCH <= strength(column) < TELLS_ALMOST_ALL]
    if strong:
        text = f"These almost determine the label: {_in_words(strong)}."
        advice = (
            "If a column is another form of the label, ignore this. If it is a site, a scanner or a date, a model may learn "
            "to recognise that instead."
        )
        found.append(finding(_NAME, _TITLE, "warning", text, advice=advice))
    if telling:
        advice = "Compare results within each value of it, to see whether a model only learnt it."
        found.append(
            finding(_NAME, _TITLE, "notice", f"These tell much of the label: {_in_words(telling)}.", advice=advice)
        )
    if not found:
        text = f"{counted(len(columns), 'column')} looked at: none tells much of the label."
        if strength(columns[0]) > 0:
            text += f" Most tells {_in_words(columns[:1])}."
        found.append(finding(_NAME, _TITLE, "passed", text))
    return found


def _in_words(columns: list[ColumnRecord]) -> str:
    return listed(
        [
            f"{column.column}{f' (of {column.label})' if column.label else ''} with {percent(column.balanced_accuracy)} "
            f"right on held-out images (guessing: {percent(column.chance)})"
            for column in columns
        ]
    )


def _measure(survey: Survey, column: str, values: np.ndarray) -> ColumnRecord | None:
    rows = survey.readable_rows
    groups = None if survey.groups is None else survey.groups[rows]
    told = [
        (held_out_accuracy(values[rows], classes, groups), 1 / num_classes, label)
        for classes, label in zip(survey.task.views(survey.targets[rows]), _names_of_views(survey), strict=True)
        if (num_classes := len(np.unique(classes))) > 1
    ]
    if not told:
        return None
    accuracy, chance, label = max(told, key=lambda each: each[0])
    return ColumnRecord(column=column, label=label, balanced_accuracy=accuracy, chance=chance)


def _names_of_views(survey: Survey) -> Sequence[str | None]:
    """The labels that can be told one by one; classes are told together."""
    return [None] if survey.task.partitions else survey.class_names


def _image_properties(survey: Survey) -> dict[str, np.ndarray]:
    """What can be read from the files without looking at the picture."""
    facts = survey.facts
    return {
        f"height {_IMAGE_PROPERTIES}": np.asarray([fact.height for fact in facts]),
        f"width {_IMAGE_PROPERTIES}": np.asarray([fact.width for fact in facts]),
        f"channels and bit depth {_IMAGE_PROPERTIES}": np.asarray([fact.kind.partition(" ")[2] for fact in facts]),
        "type of the file": np.asarray(
            [PurePath(survey.image_name(row)).suffix.casefold() for row in range(len(survey))]
        ),
    }
