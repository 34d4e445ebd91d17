"""Metrics with their intervals as tables and figures; shared by the pages of fine-tuning and prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import looks_in_words, metric_format
from crossgraft.report.blocks import Block, Figure
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, counts, interval, number, table_of, whole, words
from crossgraft.report.verdict import Caveat, Gravity
from crossgraft.words.formatting import count, joined

_MOST_DRAWN = 24


@runtime_checkable
class WithoutInterval(Protocol):
    """A row that says why it has no interval."""

    @property
    def no_interval_reason(self) -> str | None:
        """None where it has one."""
        ...


def reasons_of_no_interval(rows: Iterable[WithoutInterval]) -> list[str]:
    """Each reason once, as a sentence."""
    reasons = dict.fromkeys(row.no_interval_reason for row in rows if row.no_interval_reason)
    return [reason if reason.startswith("No interval") else f"No interval: {reason.rstrip('.')}." for reason in reasons]


def metrics_table(metrics: Sequence[MetricRecord], *, caption: str, file_name: str) -> Table:
    """One row per metric."""
    as_text = metric_format(metrics)
    reasons = dict.fromkeys(
        f"{row.title}: {text}" for row in metrics for text in (row.reason, row.no_interval_reason) if text is not None
    )
    lower = [row.title for row in metrics if not row.higher_is_better]
    note = [f"Smaller is better for {joined(list(dict.fromkeys(lower)))}; larger for all others."] if lower else []
    splits_here: list[tuple[Column, Callable[[MetricRecord], Cell]]] = []
    if len({row.split for row in metrics}) > 1:
        splits_here.append((Column("Measured on"), lambda row: words(row.split)))
    without_groups = all(row.num_groups is None for row in metrics)
    return table_of(
        metrics,
        [
            (Column("Metric"), lambda row: words(row.title)),
            (Column("Value", numeric=True), lambda row: number(row.value, as_text)),
            (INTERVAL, lambda row: interval(row.low, row.high, as_text)),
            *splits_here,
            (Column("Images", numeric=True), lambda row: counts(row.num_images)),
            (Column("Groups", numeric=True, page_only=without_groups), lambda row: counts(row.num_groups)),
        ],
        caption=caption,
        file_name=file_name,
        notes=[*note, *reasons],
    )


def metrics_by_class(metrics: Sequence[MetricRecord], *, caption: str, first: str) -> Table:
    """One row per class or label with its support: how many of the images are of it."""
    # Sensitivity counts the images of the class alone, and has no value where there are none.
    of_class = [row for row in metrics if row.metric == "sensitivity"]
    support = {row.class_name: 0 if row.value is None else row.num_images for row in of_class}
    table = metrics_by_name(metrics, caption=caption, first=first, file_name="metrics-by-class")
    rows = [[name, counts(support.get(name.text)), *others] for name, _, *others in table.rows]
    columns = [table.columns[0], Column("Support", numeric=True), *table.columns[2:]]
    note = f"Support: images of the {first.lower()} among those that were measured."
    return replace(table, columns=columns, rows=rows, notes=[note, *table.notes])


_FIRST_OF_A_CLASS = ("sensitivity", "specificity", "auc")
"""Where there is no room for all metrics: how often it is recognised, how often it is called wrongly, how well it is ranked."""


def metrics_by_name(metrics: Sequence[MetricRecord], *, caption: str, first: str, file_name: str) -> Table:
    """One row per value of an attribute, one column per metric with its interval beside it."""
    titles = list(dict.fromkeys(row.title for row in metrics))
    formats = {title: metric_format([row for row in metrics if row.title == title]) for title in titles}
    names = list(dict.fromkeys(name_of(row) for row in metrics))
    cells = {(name_of(row), row.title): row for row in metrics}
    columns = [Column(first), Column("Images", numeric=True)]
    named = {row.title: row.metric for row in metrics}
    for title in titles:
        place = 1 + (_FIRST_OF_A_CLASS.index(named[title]) if named[title] in _FIRST_OF_A_CLASS else len(_FIRST_OF_A_CLASS))
        columns += [
            Column(title, numeric=True, place=place),
            Column("95 % interval", numeric=True, csv_titles=(f"{title} low", f"{title} high"), place=place),
        ]
    rows = []
    for name in names:
        of_name = [cells.get((name, title)) for title in titles]
        images = max((row.num_images for row in of_name if row is not None), default=0)
        line = [words(name), whole(images, count(images))]
        for title, row in zip(titles, of_name, strict=True):
            value, low, high = (None, None, None) if row is None else (row.value, row.low, row.high)
            line += [number(value, formats[title]), interval(low, high, formats[title])]
        rows.append(line)
    return Table(caption=caption, columns=columns, rows=rows, file_name=file_name, notes=_reasons(metrics)[:8])


def _reasons(metrics: Sequence[MetricRecord]) -> list[str]:
    """Why values are missing: one sentence a class and reason, whatever number of metrics it is about."""
    without: dict[tuple[str, str], list[str]] = {}
    for row in metrics:
        if row.reason is not None:
            without.setdefault((name_of(row), row.reason.rstrip(".")), []).append(row.title)
    return [f"{name}, {joined(list(dict.fromkeys(titles)))}: {reason}." for (name, reason), titles in without.items()]


def name_of(row: MetricRecord) -> str:
    """The class or the value of the attribute that a metric is about."""
    return row.class_name or row.attribute_value or "all"


def metrics_figure(rows: Sequence[IntervalRow], *, x_label: str, identifier: str, caption: str) -> list[Block]:
    """The figure of ``rows``; none where there is nothing to compare, or so much that it would be a wall."""
    drawable = [row for row in rows if row.value.value is not None]
    if len(drawable) < 2 or len(rows) > _MOST_DRAWN:
        return []
    return [Figure([intervals_figure(rows, x_label=x_label, identifier=identifier)], caption=caption)]


def looked_at_before(source: Source[Any]) -> Caveat | None:
    """Which result is the best was seen on the images that all of them were measured on."""
    text = looks_in_words(source.record.looks, source.record.primary_metric)
    return None if text is None else Caveat(text, Gravity.FLATTERED)
