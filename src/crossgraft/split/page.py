"""How a data set was divided: sizes, classes and origin of each part."""

from __future__ import annotations

from crossgraft.data.record import DataSplitRecord, SplitRow
from crossgraft.models.on_this_machine import with_models_here
from crossgraft.options.command import CARRIED
from crossgraft.options.data import Splits
from crossgraft.report.blocks import Heading, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, counts, table_of, words
from crossgraft.report.verdict import Caveat, CaveatOf, Following, Gravity, caveats_of, leakage_not_checked, verdict_section
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
    return Section(name="parts", title=title, part="evidence", blocks=[parts_table(record.splits)])


def split_verdict_section(source: Source[DataSplitRecord]) -> Section:
    """What the split is known by, whether patients are in two parts, and the command that uses it."""
    record = source.record
    seed = "" if record.seed is None else f", drawn with seed {record.seed}"
    leakage = f" {record.leakage}" if record.leakage_checked else ""
    answer = f"Split {record.split_fingerprint}{seed}.{leakage}"
    return verdict_section(answer, caveats_of(source, SPLIT_CAVEATS), after_split(source))


def missing_classes(source: Source[DataSplitRecord]) -> Caveat | None:
    """Classes that a part has no image of."""
    missing = source.record.missing
    if not missing:
        return None
    has_groups = any(row.num_groups is not None for row in source.record.splits)
    units = "groups (patients)" if has_groups else "images"
    advice = f"There it cannot be measured. Collect more, or leave it out: a class needs three {units} to be in three parts."
    return Caveat(f"{' '.join(missing)} {advice}", Gravity.WRONG)


SPLIT_CAVEATS: tuple[CaveatOf[DataSplitRecord], ...] = (missing_classes, leakage_not_checked)
"""The most severe first, in the order of ``report.verdict``."""


def after_split(source: Source[DataSplitRecord]) -> Following:
    """To rank models on the training rows of the file."""
    typed = source.typed
    flags = [] if source.out is None else [("--split", str(source.out))]
    carried = [options for options in CARRIED if options is not Splits]  # the file says what they said
    line = typed.then("rank", typed.data, flags=flags, carried=carried)
    return with_models_here(line, "on its training rows")


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


REPORT = Kind(
    DataSplitRecord,
    split_heading,
    (split_verdict_section, parts_section),
    tables_answer=True,
    terminal=(parts_section, split_verdict_section),
)
