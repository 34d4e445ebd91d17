"""What was looked at, what was not, and what needs care."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from crossgraft.records.checks import CheckRecord, Severity
from crossgraft.records.ranking import RankingRecord
from crossgraft.records.runs import RunRecord
from crossgraft.report.blocks import Checks, Items, Paragraph, Section
from crossgraft.report.sections._lookup import joined, score_title
from crossgraft.report.source import Source

_MOST_URGENT_FIRST: tuple[Severity, ...] = ("unsound", "warning", "notice", "not assessed", "passed")


def checks_section(source: Source[RankingRecord]) -> Section:
    """The checks of the record, the most urgent first."""
    checks = [*_unfinished(source.run), *source.record.checks]
    ordered = sorted(checks, key=lambda check: _MOST_URGENT_FIRST.index(check.severity))
    blocks = [Checks(ordered)] if ordered else [Paragraph("No checks were recorded.", tone="quiet")]
    return Section(name="checks", title="What was checked", part="checks", blocks=blocks)


def warnings_section(source: Source[RankingRecord]) -> Section:
    """Warnings of single scores, each once with the models it concerns."""
    record = source.record
    models: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for cell in record.cells:
        for warning in cell.warnings:
            models[cell.score, warning].append(cell.model)
    items = [
        f"{score_title(record, score)}, {_whom(names, among=len(record.models))}: {text}"
        for (score, text), names in models.items()
    ]
    blocks = [Items(items)] if items else [Paragraph("No score gave a warning.", tone="quiet")]
    return Section(name="warnings", title="Warnings of scores", part="checks", blocks=blocks)


def _whom(names: Sequence[str], *, among: int) -> str:
    return "every model" if len(names) == among else joined(names)


def _unfinished(run: RunRecord | None) -> list[CheckRecord]:
    if run is not None and run.state in ("interrupted", "failed"):
        text = f"This run is marked as {run.state}; numbers may be missing. The same command again finishes it."
        return [CheckRecord(title="Run not finished", severity="warning", text=text)]
    return []
