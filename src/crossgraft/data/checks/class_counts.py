"""Classes without images, with one image, or with few."""

from __future__ import annotations

from crossgraft.data.checks._finding import finding, listed
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey
from crossgraft.records.base import Severity
from crossgraft.words.formatting import count

FEW_IMAGES = 10
_NAME, _TITLE = "class_counts", "Class sizes"
_LEARNED = "What is not in train cannot be learned: draw another split, or leave it out."
_MEASURED = "Nothing can be said of it there: collect more images, draw another split, join classes, or leave it out."


def check_class_counts(survey: Survey) -> list[FindingRecord]:
    """Empty classes and fewer than two classes are unsound, classes of one image a warning, of few a notice."""
    found = [finding(_NAME, "Unusable rows", "unsound", problem) for problem in survey.problems]
    found += _too_few_classes(survey)
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
            found.append(finding(_NAME, _TITLE, severity, f"{words} {listed(names)}.", advice=advice))
    return found + check_classes_of_splits(survey) or [_passed(counts, what)]


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
    found: list[FindingRecord] = []
    for split in survey.split_names:
        absent = [
            name
            for name, everywhere, here in zip(
                survey.class_names, survey.class_counts, survey.counts_in(split), strict=True
            )
            if everywhere and not here
        ]
        if absent:
            severity = "unsound" if split == "train" else "warning"
            text = f"No image in {split} of: {listed(absent)}."
            found.append(finding(_NAME, "Classes missing from a split", severity, text, advice=_advice(survey, split)))
    return found


def _advice(survey: Survey, split: str) -> str:
    if split == "train":
        return "Draw another split."
    units = "images" if survey.groups is None else f"groups of {survey.group_column}"
    missing = {"test": "Their sensitivity is unknown. ", "val": "Nothing is chosen with them in mind. "}.get(split, "")
    return f"{missing}Draw another split, or collect more: a {survey.task.noun} needs three {units} to be in train, val and test."


def _passed(counts: dict[str, int], what: str) -> FindingRecord:
    least, most = count(min(counts.values())), count(max(counts.values()))
    return finding(_NAME, _TITLE, "passed", f"Every {what} has at least {least} images; the largest has {most}.")
