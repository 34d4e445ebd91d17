"""Before the long work: is something wrong with the rows that are ranked on?"""

from __future__ import annotations

from crossgraft.data import Dataset
from crossgraft.data.checks import findings_of_rows
from crossgraft.errors import DataError
from crossgraft.progress import Reporter
from crossgraft.records import CheckRecord


def check_rows(dataset: Dataset, *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    """What the checks of single rows find, for the report; warnings are shown at once, and no other row is opened.

    Raises:
        DataError: Something is unsound, and ``strict`` is on.
    """
    findings = findings_of_rows(dataset)
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
