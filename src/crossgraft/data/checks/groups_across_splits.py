"""Patients (lesions, writers …) whose images are in more than one split."""

from __future__ import annotations

import numpy as np

from crossgraft.data.checks._finding import finding
from crossgraft.data.checks.alike_groups import ADVICE, find_alike_groups
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.words.formatting import count, counted

_NAME, _TITLE = "groups_across_splits", "Patient leakage"


def check_groups_across_splits(survey: Survey) -> list[FindingRecord]:
    """A patient in two splits is unsound; without patients or without a split nothing can be said."""
    if survey.groups is None:
        text = (
            "No group column was given, so images of one patient may be in several splits. Name it with --group-column."
        )
        return [finding(_NAME, _TITLE, "not assessed", text)]
    number = counted(len(np.unique(survey.groups)), "group")
    if len(survey.split_names) < 2 or survey.splits is None:
        text = f"{number} by {survey.group_column}, but no split to look at. --holdout and --folds draw one by group."
        return [finding(_NAME, _TITLE, "not assessed", text)]
    shared = [rows for rows in _rows_by_group(survey.groups) if len(survey.splits_of(rows)) > 1]
    alike = [rows for rows in find_alike_groups(survey).rows if len(survey.splits_of(rows)) > 1]
    if not shared and alike:
        text = (
            f"{number} by {survey.group_column}, none of them in more than one split under its own name; but {count(len(alike))} "
            f"would be if names that look alike are one ({survey.pairs_of_splits(alike)})."
        )
        return [finding(_NAME, _TITLE, "warning", text, advice=ADVICE, images=alike)]
    if not shared:
        text = f"{number} by {survey.group_column}, none of them in more than one of {', '.join(survey.split_names)}."
        return [finding(_NAME, _TITLE, "passed", text)]
    verb = "has" if len(shared) == 1 else "have"
    text = (
        f"{count(len(shared))} of {number} by {survey.group_column} {verb} images in more than one split "
        f"({survey.pairs_of_splits(shared)}; {counted(sum(map(len, shared)), 'image')})."
    )
    advice = "Draw the split by group: --holdout or --folds with --group-column."
    return [finding(_NAME, _TITLE, "unsound", text, advice=advice, images=shared)]


def _rows_by_group(groups: np.ndarray) -> list[np.ndarray]:
    """Rows of each group, ascending, the groups in the order of their first row."""
    _, first, index = np.unique(groups, return_index=True, return_inverse=True)
    by_group = np.split(np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))[:-1])
    return [by_group[place] for place in np.argsort(first)]
