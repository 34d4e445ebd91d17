"""A study: what its levels differ by, every cell, what failed, and how it was made."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.bench.record import CellRecord, FailureRecord, LevelDifference, StudyRecord
from crossgraft.compute import rounded_size
from crossgraft.published.page import friedman_figure, friedman_in_words
from crossgraft.report.blocks import Block, Figure, Heading, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, counts, interval, number, table_of, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    Gravity,
    caveats_of,
    checks_section,
    found_by_checks,
    of_check,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.words.formatting import NumberFormat, counted, duration

MOST_CELLS_AT_A_TERMINAL = 12
MOST_DRAWN = 20
"""Levels, beside the verdict."""


def study_heading(source: Source[StudyRecord]) -> Heading:
    """The title and the size of the grid."""
    record = source.record
    sizes = [f"{len(factor.levels)} × {factor.name}" for factor in record.factors if len(factor.levels) > 1]
    memory = [] if record.peak_mb is None else [f"at most {rounded_size(round(1e6 * record.peak_mb))} of memory a job"]
    summary = " · ".join([counted(record.num_jobs, "job"), *sizes, f"{duration(record.seconds)} of computing", *memory])
    return Heading(title=record.title, summary=summary, advice=_answer(record))


def study_verdict_section(source: Source[StudyRecord]) -> Section:
    """Which level differs from the first one, the biggest caveat, and what to type next."""
    record = source.record
    following = None
    if record.num_done < record.num_jobs and source.typed.verb:
        flags = [("--retry-failed", None)] if record.num_failed else []
        kept = [flag for flag in source.typed.flags if flag[0] not in ("--retry-failed", "--status", "--plan")]
        line = " ".join(
            ["crossgraft", source.typed.verb, *source.typed.inputs]
            + [word for name, value in [*kept, *flags] for word in ([name] if value is None else [name, value])]
        )
        following = Following(line, "to do what is missing")
    figure = [_differences_figure(record, f"{source.prefix}differences")] if record.differences else []
    return verdict_section(_answer(record), caveats_of(source, STUDY_CAVEATS), following, *figure)


def _differences_figure(record: StudyRecord, identifier: str) -> Figure:
    shown = record.differences[:MOST_DRAWN]
    rows = [IntervalRow(each.level, Interval.of(each)) for each in shown]
    x_label = f"{record.metric} minus that of {shown[0].reference}"
    caption = "Means of paired differences, with 95 % intervals."
    if left_out := len(record.differences) - len(shown):
        caption += f" {counted(left_out, 'further level')} not drawn."
    return Figure([intervals_figure(rows, x_label=x_label, identifier=identifier, marked=0.0)], caption=caption)


def _answer(record: StudyRecord) -> str:
    done = f"{record.num_done} of {counted(record.num_jobs, 'job')} done"
    if record.compare is None or record.metric is None or not record.differences:
        return f"{done}."
    if all(each.low is None for each in record.differences):
        return (
            f"{done}. Whether levels of {record.compare} differ in {record.metric} by more than chance cannot be told from them."
        )
    apart = [each for each in record.differences if each.low is not None and each.high is not None and each.low * each.high > 0]
    reference = record.differences[0].reference
    if not apart and any(each.low is None for each in record.differences):
        known = sum(each.low is not None for each in record.differences)
        return (
            f"{done}. {known} of {len(record.differences)} levels of {record.compare} have an interval; none of these differs "
            f"from {reference} in {record.metric} by more than chance allows."
        )
    if not apart:
        return f"{done}. No level of {record.compare} differs from {reference} in {record.metric} by more than chance allows."
    as_text = _format([each.value for each in apart], apart)
    said = [f"{each.level} by {as_text(each.value)} {as_text.interval(each.low, each.high)}" for each in apart]
    return f"{done}. In {record.metric} differ from {reference}: {'; '.join(said)}."


def not_finished(source: Source[StudyRecord]) -> Caveat | None:
    """Jobs that are missing or failed."""
    return of_check(found_by_checks(source.record.checks, "warning"))


def few_pairs(source: Source[StudyRecord]) -> Caveat | None:
    """Differences that have no interval."""
    reasons = {each.reason for each in source.record.differences if each.reason is not None}
    if not reasons:
        return None
    return Caveat(f"Not every difference has an interval: {min(reasons)}.", Gravity.LIMITED)


def many_comparisons(source: Source[StudyRecord]) -> Caveat | None:
    """Intervals hold one by one."""
    num_levels = len(source.record.differences)
    if num_levels < 3:
        return None
    return Caveat(f"Each interval is 95 % by itself; of {num_levels}, some may miss 0 by chance.", Gravity.LIMITED)


STUDY_CAVEATS: tuple[CaveatOf[StudyRecord], ...] = (not_finished, few_pairs, many_comparisons)
"""The most severe first."""


def differences_section(source: Source[StudyRecord]) -> Section | None:
    """Paired differences to the first level, and ranks over targets."""
    record = source.record
    if not record.differences:
        return None
    blocks: list[Block] = [differences_table(record)]
    if record.friedman is not None:
        blocks += [
            Paragraph(friedman_in_words(record.friedman)),
            friedman_figure(record.friedman, identifier=f"{source.prefix}friedman"),
        ]
    elif record.no_friedman_reason is not None:
        blocks.append(Paragraph(record.no_friedman_reason, tone="quiet"))
    return Section(name="differences", title=f"Levels of {record.compare}", part="evidence", blocks=blocks)


def differences_table(record: StudyRecord) -> Table:
    """One row a level."""
    as_text = _format([each.value for each in record.differences], record.differences)
    return table_of(
        record.differences,
        [
            (Column("Level"), lambda each: words(each.level)),
            (Column("Difference", numeric=True), lambda each: number(each.value, as_text)),
            (INTERVAL, lambda each: interval(each.low, each.high, as_text)),
            (Column("Pairs", numeric=True), lambda each: counts(each.num_pairs)),
            (Column("Remark", page_only=True), lambda each: words(each.reason)),
        ],
        caption=f"{record.metric}: each level minus {record.differences[0].reference}, paired",
        file_name="differences",
    )


def cells_section(source: Source[StudyRecord]) -> Section:
    """Every cell of the grid."""
    return Section(name="cells", title="Cells", part="evidence", blocks=[cells_table(source.record)])


def cells_at_a_terminal(source: Source[StudyRecord]) -> Section | None:
    """The same where it fits."""
    return cells_section(source) if len(source.record.cells) <= MOST_CELLS_AT_A_TERMINAL else None


def cells_table(record: StudyRecord) -> Table:
    """One row a cell: its levels, its jobs, the mean of the compared number."""
    as_text = _format([cell.value for cell in record.cells], record.cells)
    varied = [factor.name for factor in record.factors if factor.name in record.cells[0].levels and len(factor.levels) > 1]
    levels = [(Column(name), lambda cell, name=name: words(cell.levels.get(name))) for name in varied]
    return table_of(
        record.cells,
        [
            *levels,
            (Column("Done", numeric=True), lambda cell: counts(cell.num_done)),
            (Column("Failed", numeric=True), lambda cell: counts(cell.num_failed)),
            (Column(record.metric or "Value", numeric=True), lambda cell: number(cell.value, as_text)),
            (INTERVAL, lambda cell: interval(cell.low, cell.high, as_text)),
            (Column("Interval of", page_only=True), _interval_of),
        ],
        caption=f"{record.metric or 'Results'}: means over seeds",
        file_name="cells",
    )


def _interval_of(cell: CellRecord) -> Cell:
    return words(cell.interval_of or cell.no_interval_reason)


def failures_section(source: Source[StudyRecord]) -> Section | None:
    """Which jobs failed, and why."""
    failures = source.record.failures
    if not failures:
        return None
    return Section(name="failures", title="Failed jobs", part="checks", blocks=[failures_table(failures)])


def failures_table(failures: Sequence[FailureRecord]) -> Table:
    """One row a job."""
    return table_of(
        failures,
        [
            (Column("Job", page_only=True), lambda failure: words(failure.job)),
            (Column("Levels"), lambda failure: words(", ".join(f"{name} {level}" for name, level in failure.levels.items()))),
            (Column("Reason"), lambda failure: words(failure.reason)),
        ],
        caption="Jobs that failed",
        file_name="failures",
    )


def study_checks_section(source: Source[StudyRecord]) -> Section | None:
    """What is missing; None where nothing is."""
    return checks_section(source) if source.record.checks else None


def _format(values: Sequence[float | None], rows: Sequence[CellRecord | LevelDifference]) -> NumberFormat:
    widths = [row.high - row.low for row in rows if row.low is not None and row.high is not None]
    return NumberFormat.for_column([value for value in values if value is not None], interval_widths=widths)


REPORT = Kind(
    StudyRecord,
    study_heading,
    (
        study_verdict_section,
        differences_section,
        cells_section,
        failures_section,
        study_checks_section,
        provenance_section,
        references_section,
    ),
    tables_answer=True,
    terminal=(cells_at_a_terminal, differences_section, failures_section, study_verdict_section),
)
"""What ``crossgraft bench`` writes."""
