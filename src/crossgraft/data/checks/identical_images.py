"""Pictures that are there more than once, pixel by pixel."""

from __future__ import annotations

import numpy as np

from crossgraft.data.checks._finding import finding, pictures, tallied
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.words.formatting import count, counted


def check_identical_within(survey: Survey) -> list[FindingRecord]:
    """Copies inside one split (inside the data, if there is no split): a warning."""
    inside: list[np.ndarray] = []
    places: list[str] = []
    for rows in survey.copies:
        for split in survey.split_names or [""]:
            together = rows if survey.splits is None else rows[survey.splits[rows] == split]
            if len(together) > 1:
                inside.append(together)
                places += [split] * (len(together) - 1)
    if not inside:
        where = "of one split " if survey.split_names else ""
        text = f"No two images {where}are the same, pixel by pixel."
        return [finding("identical_within", "Identical images", "passed", text)]
    where = f" of the same split, pixel by pixel ({tallied(places)})" if survey.split_names else ", pixel by pixel"
    text = f"{counted(len(places), 'image')} {'is a copy' if len(places) == 1 else 'are copies'} of another{where}."
    advice = "Keep one of each: a copy counts an image twice"
    advice += ", and a random split puts copies on both sides." if not survey.split_names else "."
    return [finding("identical_within", "Identical images", "warning", text, advice=advice, images=inside)]


def check_identical_across(survey: Survey) -> list[FindingRecord]:
    """The same picture in two splits: unsound, because the test then asks for what was learnt by heart."""
    title = "Identical images across splits"
    if len(survey.split_names) < 2:
        text = "There is no split to compare. Leave out --holdout 0, or give a split with --split."
        return [finding("identical_across", title, "not assessed", text)]
    shared = [rows for rows in survey.telling_copies if len(survey.splits_of(rows)) > 1]
    if not shared:
        text = f"No picture is in more than one of {', '.join(survey.split_names)}, pixel by pixel."
        return [finding("identical_across", title, "passed", text)]
    verb = "is" if len(shared) == 1 else "are"
    text = f"{pictures(len(shared))} {verb} in more than one split, pixel by pixel ({survey.pairs_of_splits(shared)})."
    advice = "Keep each in one split only: a test on images that were trained on measures memory."
    return [finding("identical_across", title, "unsound", text, advice=advice, images=shared)]


def check_conflicting_labels(survey: Survey) -> list[FindingRecord]:
    """The same picture with different labels: unsound, one of them is wrong."""
    title = "Same picture, different labels"
    conflicts = [rows for rows in survey.telling_copies if len(np.unique(survey.targets[rows], axis=0)) > 1]
    if not conflicts:
        text = "No picture has two different labels."
        return [finding("conflicting_labels", title, "passed", text)]
    verb = "is" if len(conflicts) == 1 else "are"
    text = f"{pictures(len(conflicts))} {verb} there more than once with different labels."
    advice = "Look at them and correct or remove them."
    return [finding("conflicting_labels", title, "unsound", text, advice=advice, images=conflicts)]


def check_pictures_of_two_groups(survey: Survey) -> list[FindingRecord]:
    """The same picture under two patients: unsound, because splits by patient cannot keep it on one side.

    An image of which nobody is known is a group of its own, but of no patient that could be another one.
    """
    title = "Same picture, two patients"
    if survey.groups is None:
        return []
    groups, known = survey.groups, survey.known_groups
    if not known.any():
        return []
    shared = [rows for rows in survey.telling_copies if len(np.unique(groups[rows[known[rows]]])) > 1]
    if not shared:
        text = f"No picture belongs to two of the {count(len(np.unique(groups[known])))} groups (column {survey.group_column})."
        return [finding("pictures_of_two_groups", title, "passed", text)]
    verb = "belongs" if len(shared) == 1 else "belong"
    text = f"{pictures(len(shared))} {verb} to more than one group (column {survey.group_column})."
    advice = "Either the groups are wrong or the images are: a split by group cannot keep such a picture on one side."
    return [finding("pictures_of_two_groups", title, "unsound", text, advice=advice, images=shared)]
