"""How a data set was divided: sizes, classes and origin of each part."""

from __future__ import annotations

from crossgraft.records import DataSplitRecord, SplitRow
from crossgraft.report.blocks import Block, Heading, Items, Paragraph, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, counts, table_of, words
from crossgraft.words.formatting import counted


def split_heading(source: Source[DataSplitRecord]) -> Heading:
    """The data and the parts."""
    record = source.record
    sizes = ", ".join(f"{row.num_images} {row.name}" for row in record.splits)
    return Heading(title=f"Split of {record.name}", summary=sizes, advice=record.leakage)


def parts_section(source: Source[DataSplitRecord]) -> Section:
    """Images, groups and classes of each part."""
    record = source.record
    title = f"{record.name}: {counted(record.num_images, 'image')} in {counted(len(record.splits), 'part')}"
    blocks: list[Block] = [parts_table(record.splits)]
    blocks += [Items(record.missing)] if record.missing else []
    return Section(name="parts", title=title, part="evidence", blocks=blocks)


def verdict_section(source: Source[DataSplitRecord]) -> Section:
    """What the split is known by, and whether patients are in two parts."""
    record = source.record
    seed = "" if record.seed is None else f", drawn with seed {record.seed}"
    text = f"Split {record.split_fingerprint}{seed}. {record.leakage}"
    return Section(name="verdict", title="Verdict", part="verdict", blocks=[Paragraph(text, tone="lead")])


def parts_table(rows: list[SplitRow]) -> Table:
    """One row per part of the data."""
    return table_of(
        rows,
        [
            (Column("Part"), lambda split: words(split.name)),
            (Column("Images", numeric=True), lambda split: counts(split.num_images)),
            (Column("Groups", numeric=True), lambda split: counts(split.num_groups)),
            (Column("Origin"), lambda split: words(split.origin)),
        ],
        caption="Parts of the data",
        file_name="splits",
    )


DATA_SPLIT = Kind(
    DataSplitRecord,
    split_heading,
    (verdict_section, parts_section),
    terminal=(parts_section, verdict_section),
)
