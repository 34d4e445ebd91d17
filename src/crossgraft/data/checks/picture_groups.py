"""Thumbnails of images that belong together in a finding, for the report."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.data.thumbnails import thumbnail_png
from crossgraft.records.base import Thumbnail

_MOST_GROUPS = 12
_MOST_IMAGES = 2
_SHOWN = ("identical_across", "conflicting_labels", "pictures_of_two_groups", "near_duplicates", "identical_within")


def show_groups(survey: Survey, findings: Sequence[FindingRecord]) -> list[Thumbnail]:
    """The first groups of each finding about pictures that belong together, two images each.

    What a thumbnail is called begins with the title of its finding and ": ", then says which images these are.
    """
    return [
        Thumbnail(
            class_name=f"{finding.title}: {_caption(survey, shown)}", png_base64=thumbnail_png(survey.read(row - 1))
        )
        for finding in findings
        if finding.check in _SHOWN
        for group in finding.images[:_MOST_GROUPS]
        for shown in [group if len(group) <= _MOST_IMAGES else [group[0], group[-1]]]
        for row in shown
    ]


def _caption(survey: Survey, rows: Sequence[int]) -> str:
    return " and ".join(f"{row} ({_place(survey, row - 1)})" for row in rows)


def _place(survey: Survey, row: int) -> str:
    """Split and label of a row."""
    label = " + ".join(survey.task.names_of(survey.targets[row], survey.class_names)) or "no label"
    split = "" if survey.splits is None else str(survey.splits[row])
    return ", ".join(part for part in (split, label) if part)
