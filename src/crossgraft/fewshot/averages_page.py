"""The page of averages over data sets: which head is best where the backbone was trained, and elsewhere."""

from __future__ import annotations

from collections.abc import Callable

from crossgraft.fewshot.averages import averages_in_words
from crossgraft.fewshot.record import NUMBERS, AveragedSet, AverageRow, AveragesRecord
from crossgraft.report.blocks import Figure, Heading, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, columns_of, counts, number, table_of, words, yes_or_no
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Gravity,
    caveats_of,
    in_one_line,
    provenance_section,
    references_section,
    verdict_section,
)
from crossgraft.words.formatting import counted, joined

_FEW_SETS = 5
_Column = tuple[Column, Callable[[AveragedSet], Cell]]


def averages_heading(source: Source[AveragesRecord]) -> Heading:
    """The model, and how many heads and data sets."""
    record = source.record
    return Heading(
        title=f"{record.model} on few-shot tasks of {counted(len(record.sets), 'data set')}",
        summary=f"{counted(len(record.heads), 'head')} · {joined(record.samplers)}",
        advice=in_one_line(averages_in_words(record), caveats_of(source, AVERAGES_CAVEATS)),
    )


def averages_verdict_section(source: Source[AveragesRecord]) -> Section:
    """The best head on average with what limits it, and all heads as a figure."""
    record = source.record
    rows = [
        IntervalRow(row.head, Interval(row.average, row.average - half, row.average + half))
        for row in record.heads
        for half in (row.half_width or 0.0,)
    ]
    drawing = intervals_figure(rows, x_label="Accuracy on queries, mean over data sets", identifier=f"{source.prefix}averages")
    caption = (
        "Mean over data sets, with its interval of 95 % over them. They differ in how hard they are, so that these intervals "
        "are wide beside the differences of heads, which meet the same tasks."
    )
    caveats = caveats_of(source, AVERAGES_CAVEATS)
    return verdict_section(averages_in_words(record), caveats, None, Figure([drawing], caption=caption))


def averages_section(source: Source[AveragesRecord]) -> Section:
    """Means over seen, unseen and all data sets, and ranks."""
    record = source.record
    num_seen = sum(each.seen for each in record.sets)
    table = table_of(
        record.heads,
        columns_of(
            AverageRow, *(name for name in AverageRow.model_fields if any(getattr(row, name) is not None for row in record.heads))
        ),
        caption=f"Averages over {num_seen} seen and {len(record.sets) - num_seen} unseen data sets",
        file_name="averages",
        notes=[
            "± is half of an interval over data sets (95 %, Student's t), each of which counts once: it tells what to expect on "
            "another one like these. Below three there is none. Rank: mean over data sets; heads within each other's intervals "
            "over episodes share one, as on the leaderboard of Meta-Dataset."
        ],
    )
    return Section(name="averages", title="Averages", part="evidence", blocks=[table])


def sets_section(source: Source[AveragesRecord]) -> Section:
    """Every head on every data set."""
    record = source.record

    def column(head: str) -> _Column:
        return Column(head, numeric=True), lambda each: number(each.accuracies[head], NUMBERS)

    def half_width(head: str) -> _Column:
        title = Column("±", numeric=True, csv_titles=(f"{head}_half_width",), page_only=True)
        return title, lambda each: number(each.half_widths[head], NUMBERS)

    of_heads = [make(row.head) for row in record.heads for make in (column, half_width)]
    table = table_of(
        record.sets,
        [
            (Column("Data set"), lambda each: words(each.name)),
            (Column("Seen"), lambda each: yes_or_no(each.seen)),
            (Column("Episodes", numeric=True), lambda each: counts(each.num_episodes)),
            *of_heads,
        ],
        caption="Data sets, seen ones first",
        file_name="sets",
        notes=[
            "± is half of an interval of 95 % over the episodes of the data set. Who marked a set as seen is the user (--seen)."
        ],
    )
    return Section(name="sets", title="Data sets", part="evidence", blocks=[table])


def few_sets(source: Source[AveragesRecord]) -> Caveat | None:
    """Too few data sets for a mean over them to say much."""
    count = len(source.record.sets)
    if count >= _FEW_SETS:
        return None
    return Caveat(f"{counted(count, 'data set')} are few: the published averages are over 13.", Gravity.LIMITED)


def nothing_is_seen(source: Source[AveragesRecord]) -> Caveat | None:
    """No data set is marked."""
    if any(each.seen for each in source.record.sets):
        return None
    return Caveat(
        "No data set is marked as seen. If the backbone was trained on one, run that one again with --seen.", Gravity.UNCHECKED
    )


AVERAGES_CAVEATS: tuple[CaveatOf[AveragesRecord], ...] = (few_sets, nothing_is_seen)

AVERAGES = Kind(
    AveragesRecord,
    averages_heading,
    (averages_verdict_section, averages_section, sets_section, provenance_section, references_section),
    tables_answer=True,
    terminal=(sets_section, averages_section, averages_verdict_section),
)
