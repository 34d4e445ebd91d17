"""Networks around the mean of their weights: the table, and what it says."""

from __future__ import annotations

from collections.abc import Callable

from crossgraft.centre.record import CentredNetwork, CentreRecord
from crossgraft.report.blocks import Block, Heading, Items, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, number, table_of, words
from crossgraft.report.verdict import provenance_section, references_section, verdict_section
from crossgraft.words.formatting import NumberFormat, counted

_THREE = NumberFormat(decimals=3)


def answer_in_words(record: CentreRecord) -> str:
    """How far they lie from their centre, the nearest and the farthest, and how far the centre went from the start."""
    ordered = sorted(record.networks, key=lambda each: each.to_centre.l2)
    as_text = NumberFormat.for_column([each.to_centre.l2 for each in ordered])
    nearest, farthest = ordered[0], ordered[-1]
    text = (
        f"{counted(len(ordered), 'network')} lie {as_text(record.mean_to_centre)} from the mean of their weights on average: "
        f"{nearest.label} {as_text(nearest.to_centre.l2)}, {farthest.label} {as_text(farthest.to_centre.l2)}."
    )
    if record.centre_to_start is None:
        return text
    return f"{text} The mean itself lies {as_text(record.centre_to_start.l2)} from {record.start}."


def centre_heading(source: Source[CentreRecord]) -> Heading:
    """How many networks, and the answer."""
    record = source.record
    names = list(dict.fromkeys(each.name for each in record.networks))
    summary = f"{', '.join(names)} · {counted(record.num_weights, 'weight')} in front of the head"
    title = f"{counted(len(record.networks), 'network')} and the mean of their weights"
    return Heading(title=title, summary=summary, advice=answer_in_words(record))


def centre_verdict_section(source: Source[CentreRecord]) -> Section:
    """The answer."""
    return verdict_section(answer_in_words(source.record), [], None)


def centre_section(source: Source[CentreRecord]) -> Section:
    """One row per network."""
    record = source.record
    lengths = NumberFormat.for_column([each.to_centre.l2 for each in record.networks])
    small = NumberFormat.for_column([each.to_centre.rms for each in record.networks])
    table = table_of(
        record.networks,
        [
            (Column("Network"), lambda row: words(row.label)),
            (Column("Task"), lambda row: words(row.task)),
            (Column("Way", page_only=True), lambda row: words(", ".join(row.ways) or None)),
            (Column("To the centre", numeric=True), lambda row: number(row.to_centre.l2, lengths)),
            (Column("rms", numeric=True), lambda row: number(row.to_centre.rms, small)),
            (Column("Relative", numeric=True), lambda row: number(row.to_centre.relative, _THREE)),
            *([] if record.start is None else _to_start(lengths)),
        ],
        caption="Distances of weights in front of the head",
        file_name="centre",
        notes=[
            f"Mean distance to the centre: {lengths(record.mean_to_centre)}. Centre: the mean of the weights of all of them. "
            f"rms: root mean square over weights; relative: over the length of the weights of {record.start or 'the centre'}. "
            "Heads and statistics of BatchNorm are left out."
        ],
    )
    blocks: list[Block] = [table, *([Items(record.notes)] if record.notes else [])]
    return Section(name="centre", title="Around the centre", part="evidence", blocks=blocks, is_first=True)


def _to_start(lengths: NumberFormat) -> list[tuple[Column, Callable[[CentredNetwork], Cell]]]:
    return [
        (Column("To the start", numeric=True), lambda row: number(None if row.to_start is None else row.to_start.l2, lengths))
    ]


REPORT = Kind(
    CentreRecord,
    centre_heading,
    (centre_verdict_section, centre_section, provenance_section, references_section),
    terminal=(centre_section, centre_verdict_section),
)
