"""Patients (lesions, writers …) that a data set may know under two names."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from crossgraft.data._look_alikes import look_alikes
from crossgraft.data.checks._finding import finding
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.data.rows import ImageRows
from crossgraft.data.sources import SourceRows
from crossgraft.words.formatting import counted, joined

ADVICE = "If they are one, correct the column: a split by group puts images of one into several parts."


class AlikeGroups(NamedTuple):
    """Groups whose names look alike (``look_alikes``).

    Attributes:
        rows: Rows of each set of such groups, ascending.
        text: Their number in words that tell no name; empty where there are none.
    """

    rows: list[np.ndarray]
    text: str


def check_alike_groups(survey: Survey) -> list[FindingRecord]:
    """A warning where two names of groups may be one patient."""
    found = find_alike_groups(survey)
    if not found.rows:
        return []
    apart = [rows for rows in found.rows if len(survey.splits_of(rows)) > 1]
    where = f" In more than one split: {survey.pairs_of_splits(apart)}." if apart else ""
    title = "Groups that look alike"
    return [finding("alike_groups", title, "warning", found.text + where, advice=ADVICE, images=found.rows)]


def find_alike_groups(images: ImageRows | SourceRows) -> AlikeGroups:
    """Look-alikes among the known groups."""
    if images.groups is None:
        return AlikeGroups([], "")
    known = images.groups if images.groups_known is None else images.groups[images.groups_known]
    found = look_alikes(list(dict.fromkeys(map(str, known.tolist()))), are_ids=True)
    if not found:
        return AlikeGroups([], "")
    set_of = {name: number for number, each in enumerate(found) for name in each.names}
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for row, group in enumerate(images.groups.tolist()):
        if str(group) in set_of:
            rows[set_of[str(group)]].append(row)
    differ_by = joined(list(dict.fromkeys(words for each in found for words in each.differ_by.split(" and "))))
    text = (
        f"{counted(len(set_of), 'group')} by {images.group_column} ({counted(sum(map(len, rows.values())), 'image')}) have "
        f"names that differ from that of another only by {differ_by}, and are kept apart."
    )
    return AlikeGroups([np.asarray(rows[number]) for number in range(len(found))], text)
