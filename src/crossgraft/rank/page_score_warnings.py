"""Warnings of single scores, each once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from crossgraft.rank.lookup import joined, score_title
from crossgraft.rank.record import RankingRecord
from crossgraft.report.blocks import Items, Paragraph, Section
from crossgraft.report.source import Source


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
