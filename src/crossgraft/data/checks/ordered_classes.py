"""Classes that look like grades, although nobody said that their order means something."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crossgraft.data.checks._finding import finding, listed
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey

_WORDS = re.compile(
    r"\b(grade|stage|level|severity|mild|moderate|severe|proliferative|bi-?rads|kl|gleason|isup|nyha)(?![a-z])",
    re.IGNORECASE,
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
