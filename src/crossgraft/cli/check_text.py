"""A check of the data as it ends in the terminal: at most 100 columns, answer first, no colour needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import DataCheckRecord, FindingRecord
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import count, counted, describe_classes

_SEVERITY_WIDTH = 14
_MOST_CLASSES = 20


def check_text(record: DataCheckRecord, report: Path | None) -> str:
    """The verdict, the data, counts of classes and splits, the findings, the path of the report."""
    end = place("Report", report) if report else ""
    findings = "\n".join(_findings(record.findings))
    parts = [f"{wrap(record.verdict)}\n{wrap(_heading(record))}", _counts(record), findings, end]
    return "\n\n".join(part for part in parts if part)


def _heading(record: DataCheckRecord) -> str:
    data = record.dataset
    groups = (
        "patient leakage not assessed (no group column)"
        if data.num_groups is None
        else f"{counted(data.num_groups, 'group')} by {data.group_column}"
    )
    images = f"{counted(data.num_images, 'image')}, {data.rows_used}"
    return " · ".join([data.name, images, describe_classes(data), groups])


def _counts(record: DataCheckRecord) -> str:
    """Images of each class, of all rows and of each split; classes beyond the twentieth are in the report."""
    data = record.dataset
    rows = [
        [name[:40], count(data.class_counts[index]), *(count(counts[index]) for counts in record.split_counts)]
        for index, name in enumerate(data.class_names[:_MOST_CLASSES])
    ]
    header = [recorded_task(data).noun, "images", *record.split_names[:5]]
    table = text_table(header, [row[: len(header)] for row in rows], right=header[1:])
    left_out = len(data.class_names) - _MOST_CLASSES
    return table + (f"\n… and {left_out} more in the report" if left_out > 0 else "")


def _findings(findings: Sequence[FindingRecord]) -> list[str]:
    """What needs attention, one paragraph each; checks that passed by name only, as the report says the rest."""
    paragraphs = [
        _paragraph(finding.severity, f"{finding.title}: {finding.text} {finding.advice}".rstrip())
        for finding in findings
        if finding.severity != "passed"
    ]
    passed = [finding.title.lower() for finding in findings if finding.severity == "passed"]
    return [*paragraphs, *([_paragraph("passed", "; ".join(passed) + ".")] if passed else [])]


def _paragraph(severity: str, text: str) -> str:
    """The severity in a column of its own; the text beside it."""
    return wrap(text, first=severity.ljust(_SEVERITY_WIDTH), indent=" " * _SEVERITY_WIDTH)
