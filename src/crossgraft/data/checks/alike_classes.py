"""Classes whose names people take for one."""

from __future__ import annotations

from crossgraft.data._look_alikes import look_alikes
from crossgraft.data.checks._finding import finding
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.checks.survey import Survey


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
