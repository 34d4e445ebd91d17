"""Metrics in words, for the report and the terminal alike."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.records import MetricRecord
from crossgraft.report.formatting import NumberFormat, counted

_ABBREVIATIONS = ("auc", "f1")


def overall(metrics: Sequence[MetricRecord]) -> list[MetricRecord]:
    """Those over all classes and all images."""
    return [row for row in metrics if row.class_name is None and row.attribute is None]


def metric_format(metrics: Sequence[MetricRecord]) -> NumberFormat:
    """The decimals of metrics in one column: at least two, as their intervals justify."""
    widths = [row.high - row.low for row in metrics if row.low is not None and row.high is not None]
    chosen = NumberFormat.for_column([row.value for row in metrics], interval_widths=widths)
    return NumberFormat(decimals=max(chosen.decimals, 2))


def metric_name_in_words(name: str) -> str:
    """The name of a metric inside a sentence.

    >>> metric_name_in_words("balanced_accuracy"), metric_name_in_words("auc"), metric_name_in_words("f1")
    ('balanced accuracy', 'AUC', 'F1')
    """
    return name.upper() if name in _ABBREVIATIONS else name.replace("_", " ")


def metric_in_words(row: MetricRecord) -> str:
    """Value, interval and what it was measured on, as part of a sentence.

    >>> row = MetricRecord(metric="auc", title="AUC", value=0.9, low=0.8, high=0.95, num_images=20, num_groups=9)
    >>> metric_in_words(row)
    'AUC 0.90 (95 % interval 0.80 to 0.95) on 20 images of 9 groups'
    """
    as_text = metric_format([row])
    groups = "" if row.num_groups is None else f" of {counted(row.num_groups, 'group')}"
    where = f"on {counted(row.num_images, 'image')}{groups}"
    if row.value is None:
        return f"{row.title} has no value {where}: {row.reason or 'not stated why'}"
    ends = "no interval"
    if row.low is not None and row.high is not None:
        ends = f"95\N{NO-BREAK SPACE}% interval {as_text(row.low)} to {as_text(row.high)}"
    return f"{row.title} {as_text(row.value)} ({ends}) {where}"
