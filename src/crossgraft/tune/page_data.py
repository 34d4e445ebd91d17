"""What was checked, and the images of a fine-tuning: how they were split, and whether patients leak."""

from __future__ import annotations

from typing import Any

from crossgraft.data.page import data_facts, data_gallery
from crossgraft.data.plot_split_counts import split_counts_figure
from crossgraft.edit.page_edits import edited_blocks
from crossgraft.records.base import CheckRecord
from crossgraft.report.blocks import Block, Facts, Figure, Items, Paragraph, Section
from crossgraft.report.checks import checks_section
from crossgraft.report.source import Source
from crossgraft.split.page import parts_table
from crossgraft.tasks import recorded_task
from crossgraft.tune.record import TuningRecord
from crossgraft.words.formatting import count


def parts_in_words(record: Any) -> str:
    """The images of each part, or the number of folds.

    >>> parts_in_words(TuningRecord.model_construct(folds=[None, None], splits=[]))
    '2 folds'
    """
    if isinstance(record, TuningRecord) and record.folds:
        return f"{len(record.folds)} folds"
    return ", ".join(f"{count(split.num_images)} {split.name}" for split in record.splits)


def tuning_checks_section(source: Source[Any]) -> Section:
    """The checks with the one of leakage, then what the command warned of."""
    record = source.record
    titles = {check.title for check in record.checks}
    checks = list(record.checks)
    if not any("patient" in title.casefold() for title in titles):
        severity = "passed" if record.leakage_checked else "not assessed"
        checks.append(CheckRecord(title="Patient leakage", severity=severity, text=record.leakage))
    section = checks_section(source.showing(record.model_copy(update={"checks": checks})))
    blocks: list[Block] = [*section.blocks]
    if record.warnings:
        blocks += [Paragraph("The command warned:"), Items(record.warnings)]
    return Section(name=section.name, title=section.title, part=section.part, blocks=blocks)


def tuning_data_section(source: Source[Any]) -> Section:
    """The parts of the data with the images of each class, then the facts and small images."""
    record = source.record
    data = record.dataset
    blocks: list[Block] = [Paragraph(record.leakage)]
    if record.splits:
        names = [split.name.removeprefix("test of ") for split in record.splits]  # of folds: no room for more
        drawn = data.class_names, names, [split.class_counts for split in record.splits]
        identifier = f"{source.prefix}splits"
        wide = split_counts_figure(*drawn, identifier=identifier)
        narrow = split_counts_figure(*drawn, identifier=f"{identifier}-narrow", is_narrow=True)
        shown = " The first 20 are drawn." if len(data.class_names) > 20 else ""
        task = recorded_task(data)
        blocks += [
            Figure(
                [wide], caption=f"Images {task.of} each {task.noun} in each part of the data.{shown}", narrow=[narrow]
            ),
            parts_table(record.splits),
        ]
    blocks += [*edited_blocks(record.edits), Facts(data_facts(data)), *data_gallery(source.thumbnails)]
    return Section(name="data", title="Data and split", part="checks", blocks=blocks)
