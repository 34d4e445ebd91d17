"""Classes without images, with one image, or with few."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey, finding
from crossgraft.data.class_names import look_alikes
from crossgraft.data.fingerprint import ListedRows
from crossgraft.records.base import Severity
from crossgraft.words.formatting import count, counted, joined, listed


def check_alike_classes(survey: Survey) -> list[FindingRecord]:
    """A warning for each group of names that differ only by case, white space or the form of their letters."""
    counts = dict(zip(survey.class_names, survey.class_counts, strict=True))
    return [
        finding(
            "alike_classes",
            "Class names that look alike",
            "warning",
            f"The {survey.task.nouns} {alike.listed(counts)} differ only by {alike.differ_by} and are kept apart.",
            advice="If they are one, correct the labels: a model would learn to tell one thing from itself.",
        )
        for alike in look_alikes(survey.class_names)
    ]


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
    alike = find_alike_groups(survey)
    if not alike.rows:
        return []
    apart = [rows for rows in alike.rows if len(survey.splits_of(rows)) > 1]
    where = f" In more than one split: {survey.pairs_of_splits(apart)}." if apart else ""
    title = "Groups that look alike"
    return [finding("alike_groups", title, "warning", alike.text + where, advice=ADVICE, images=alike.rows)]


def find_alike_groups(images: ListedRows) -> AlikeGroups:
    """Look-alikes among the known groups."""
    if images.groups is None:
        return AlikeGroups([], "")
    known = images.groups if images.groups_known is None else images.groups[images.groups_known]
    alike_sets = look_alikes(list(dict.fromkeys(map(str, known.tolist()))), are_ids=True)
    if not alike_sets:
        return AlikeGroups([], "")
    set_of = {name: number for number, alike_set in enumerate(alike_sets) for name in alike_set.names}
    rows: defaultdict[int, list[int]] = defaultdict(list)
    for row, group in enumerate(images.groups.tolist()):
        if str(group) in set_of:
            rows[set_of[str(group)]].append(row)
    differ_by = joined(list(dict.fromkeys(words for alike_set in alike_sets for words in alike_set.differ_by.split(" and "))))
    text = (
        f"{counted(len(set_of), 'group')} by {images.group_column} ({counted(sum(map(len, rows.values())), 'image')}) have "
        f"names that differ from that of another only by {differ_by}, and are kept apart."
    )
    return AlikeGroups([np.asarray(rows[number]) for number in range(len(alike_sets))], text)


_WORDS = re.compile(
    r"\b(grade|stage|level|severity|mild|moderate|severe|proliferative|bi-?rads|kl|gleason|isup|nyha)(?![a-z])", re.IGNORECASE
)
_MOST_GRADES = 7
_FEWEST_GRADES = 3


def check_ordered_classes(survey: Survey) -> list[FindingRecord]:
    """A notice where class names look ordered and ``ordinal`` was not said."""
    if survey.task.in_order or not survey.task.partitions or not looks_ordered(survey.class_names):
        return []
    text = f"The classes look like grades ({listed(survey.class_names)}), but are taken as unordered."
    advice = "If their order means something, say so with --ordinal; reports then name what does not use it."
    return [finding("ordered_classes", "Ordered classes", "notice", text, advice=advice)]


def looks_ordered(class_names: Sequence[str]) -> bool:
    """Whether the names hold words of grading, or are 3 to 7 consecutive whole numbers from 0 or 1.

    >>> looks_ordered(["0", "1", "2", "3", "4"]), looks_ordered(["mild", "none", "severe"])
    (True, True)
    >>> looks_ordered(["benign", "malignant"]), looks_ordered(["0", "1"]), looks_ordered(["3", "5", "7"])
    (False, False, False)
    """
    if len(class_names) < _FEWEST_GRADES:
        return False
    if sum(_WORDS.search(name.replace("_", " ")) is not None for name in class_names) >= 2:
        return True
    if len(class_names) > _MOST_GRADES or not all(name.isascii() and name.isdigit() for name in class_names):
        return False
    numbers = [int(name) for name in class_names]
    return numbers[0] in (0, 1) and numbers == list(range(numbers[0], numbers[0] + len(numbers)))


FEW_IMAGES = 10
_NAME, _TITLE = "class_counts", "Class sizes"


def check_class_counts(survey: Survey) -> list[FindingRecord]:
    """Empty classes and fewer than two classes are unsound, classes of one image a warning, of few a notice."""
    findings = [finding(_NAME, "Unusable rows", "unsound", problem) for problem in survey.problems]
    findings += _too_few_classes(survey)
    counts = dict(zip(survey.class_names, survey.class_counts, strict=True))
    what = survey.task.noun
    ranges: list[tuple[int, int, Severity, str, str]] = [
        (0, 0, "unsound", f"No image of the {what}", "Add images or remove it."),
        (1, 1, "warning", f"One image only of the {what}", "It cannot be in a train and a test split. Collect more."),
        (2, FEW_IMAGES - 1, "notice", f"Fewer than {FEW_IMAGES} images of the {what}", "Numbers about it move a lot."),
    ]
    for least, most, severity, words, advice in ranges:
        names = [f"{name} ({size})" if least > 1 else name for name, size in counts.items() if least <= size <= most]
        if names:
            findings.append(finding(_NAME, _TITLE, severity, f"{words} {listed(names)}.", advice=advice))
    return findings + check_classes_of_splits(survey) or [_passed(counts, what)]


def _too_few_classes(survey: Survey) -> list[FindingRecord]:
    if len(survey.class_names) < survey.task.fewest_classes:
        text = f"All images have the class {listed(survey.class_names)}; a task has at least two."
        return [finding(_NAME, _TITLE, "unsound", text, advice="Choose other labels (--label-column).")]
    if survey.task.names_every_image(len(survey), len(survey.class_names)):
        text = "Each image has a label of its own, so the labels look like numbers or names, not classes."
        return [finding(_NAME, _TITLE, "unsound", text, advice="Choose other labels (--label-column).")]
    return []


def check_classes_of_splits(survey: Survey) -> list[FindingRecord]:
    """A class that is not in train cannot be learned; one that is not in another split is not tested there."""
    findings: list[FindingRecord] = []
    for split in survey.split_names:
        absent = [
            name
            for name, everywhere, here in zip(survey.class_names, survey.class_counts, survey.counts_in(split), strict=True)
            if everywhere and not here
        ]
        if absent:
            severity = "unsound" if split == "train" else "warning"
            text = f"No image in {split} of: {listed(absent)}."
            findings.append(finding(_NAME, "Classes missing from a split", severity, text, advice=_advice(survey, split)))
    return findings


def _advice(survey: Survey, split: str) -> str:
    if split == "train":
        return "Draw another split."
    units = "images" if survey.groups is None else f"groups of {survey.group_column}"
    missing = {"test": "Their sensitivity is unknown. ", "val": "Nothing is chosen with them in mind. "}.get(split, "")
    return f"{missing}Draw another split, or collect more: a {survey.task.noun} needs three {units} to be in train, val and test."


def _passed(counts: dict[str, int], what: str) -> FindingRecord:
    least, most = count(min(counts.values())), count(max(counts.values()))
    return finding(_NAME, _TITLE, "passed", f"Every {what} has at least {least} images; the largest has {most}.")
