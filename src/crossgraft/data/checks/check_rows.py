"""Checks of the rows that a command is about to use, before the long work."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.data.checks.assess import findings_across_splits, findings_of_rows
from crossgraft.data.checks.record import FindingRecord
from crossgraft.data.dataset import Dataset
from crossgraft.errors import DataError
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord


def check_rows(dataset: Dataset, *, strict: bool, reporter: Reporter, part: str = "") -> list[CheckRecord]:
    """What the checks of single rows find, for the report; warnings are shown at once, and no other row is opened.

    Args:
        dataset: The rows.
        strict: Whether what is unsound is refused.
        reporter: Reporter of warnings.
        part: What these rows are of all that the report is about, in words; each title says it. Empty: all of it.

    Raises:
        DataError: Something is unsound, and ``strict`` is on.
    """
    found = findings_of_rows(dataset, is_part=bool(part))
    named = [each.model_copy(update={"title": f"{each.title} ({part})"}) for each in found] if part else found
    return _tell(named, strict=strict, reporter=reporter)


def check_splits(dataset: Dataset, *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    """What of one part of ``dataset.splits`` is also in another (groups, copies of images), and which classes one lacks.

    Raises:
        DataError: Something is in two parts, and ``strict`` is on.
    """
    return _tell(findings_across_splits(dataset), strict=strict, reporter=reporter)


def _tell(findings: Sequence[FindingRecord], *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    unsound = [finding for finding in findings if finding.severity == "unsound"]
    if strict and unsound:
        raise DataError(
            f"The data are unsound: {' '.join(finding.text for finding in unsound)} Run crossgraft check to see the images, "
            "or leave out --strict to go on."
        )
    for finding in findings:
        if finding.severity in ("unsound", "warning"):
            reporter.warn(f"{finding.title}: {finding.text} {finding.advice}")
    return [
        CheckRecord(title=finding.title, severity=finding.severity, text=f"{finding.text} {finding.advice}".strip())
        for finding in findings
    ]
