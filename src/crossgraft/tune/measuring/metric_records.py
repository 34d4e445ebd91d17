"""Rows of metrics as the records that are written."""

from __future__ import annotations

from collections.abc import Iterable

from crossgraft.metrics import MetricRow
from crossgraft.metrics.record import MetricRecord


def metric_records(rows: Iterable[MetricRow], *, split: str) -> list[MetricRecord]:
    """The same numbers with titles, directions and the rows that they were measured on."""
    return [
        MetricRecord(
            metric=row.metric,
            title=row.facts.title,
            value=row.value,
            low=row.low,
            high=row.high,
            reason=row.reason,
            no_interval_reason=row.note if row.value is not None and row.low is None else None,
            split=split,
            num_images=row.num_images,
            num_groups=row.num_groups,
            class_name=row.class_name,
            attribute=row.attribute,
            attribute_value=row.attribute_value,
            higher_is_better=row.facts.higher_is_better,
            explanation=" ".join(text for text in (row.facts.explanation, row.note) if text),
        )
        for row in rows
    ]
