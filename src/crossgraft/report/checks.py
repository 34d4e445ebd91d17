"""What was looked at, what was not, and what needs care."""

from __future__ import annotations

from typing import Any

from crossgraft.records.base import CheckRecord, Severity
from crossgraft.records.runs import RunRecord
from crossgraft.report.blocks import Checks, Paragraph, Section
from crossgraft.report.source import Source

_MOST_URGENT_FIRST: tuple[Severity, ...] = ("unsound", "warning", "notice", "not assessed", "passed")


def checks_section(source: Source[Any]) -> Section:
    """The checks of the record, the most urgent first."""
    checks = [*_unfinished(source.run), *source.record.checks]
    ordered = sorted(checks, key=lambda check: _MOST_URGENT_FIRST.index(check.severity))
    blocks = [Checks(ordered)] if ordered else [Paragraph("No checks were recorded.", tone="quiet")]
    return Section(name="checks", title="What was checked", part="checks", blocks=blocks)


def _unfinished(run: RunRecord | None) -> list[CheckRecord]:
    if run is not None and run.state in ("interrupted", "failed"):
        text = f"This run is marked as {run.state}; numbers may be missing. The same command again finishes it."
        return [CheckRecord(title="Run not finished", severity="warning", text=text)]
    return []
