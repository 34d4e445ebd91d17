"""The report of an edit: what was done to which images, and how far it can be seen."""

from __future__ import annotations

from crossgraft.data.page import data_facts, data_gallery
from crossgraft.edit.page_contact_sheets import CONTACT_SHEETS
from crossgraft.edit.page_edits import edits_table
from crossgraft.edit.record import EditRecord
from crossgraft.edit.words import answer_in_words, lost_in_rounding
from crossgraft.models.on_this_machine import with_models_here
from crossgraft.options.typed_command import Flag
from crossgraft.report.blocks import Block, Facts, Heading, Section
from crossgraft.report.kinds import Kind
from crossgraft.report.provenance import provenance_section
from crossgraft.report.references import references_section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, table_of, whole, words
from crossgraft.report.verdict import (
    Caveat,
    CaveatOf,
    Following,
    caveats_of,
    in_one_line,
    verdict_blocks,
)
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import counted, joined

VISIBLE_DECIBELS = 40.0
"""Below this a person sees the edit."""


def edit_heading(source: Source[EditRecord]) -> Heading:
    """The data and the edits."""
    record = source.record
    drawn = "" if record.share == 1 else f" · share {record.share:g}, drawn by {record.unit}"
    return Heading(
        title=f"{record.dataset.name}, edited",
        summary=f"{counted(record.num_edited, 'image')} edited{drawn}",
        advice=in_one_line(answer_in_words(record), caveats_of(source, EDIT_CAVEATS)),
    )


def edit_verdict_section(source: Source[EditRecord]) -> Section:
    """What was done, what limits it, and images before and after."""
    record = source.record
    blocks: list[Block] = [
        *verdict_blocks(answer_in_words(record), caveats_of(source, EDIT_CAVEATS), after_edit(source)),
        *data_gallery(source.thumbnails),
    ]
    return Section(name="verdict", title="Verdict", part="verdict", blocks=blocks)


def edits_section(source: Source[EditRecord]) -> Section:
    """Each edit with what it changed, and the classes."""
    record = source.record
    classes = table_of(
        record.classes,
        [
            (Column("Class"), lambda row: words(row.class_name)),
            (Column("Images", numeric=True), lambda row: whole(row.num_images)),
            (Column("Edited", numeric=True), lambda row: whole(row.num_edited)),
            *([(Column("Merged into"), lambda row: words(row.merged or ""))] if record.classes[0].merged else []),
        ],
        caption="Classes",
        file_name="classes",
    )
    return Section(name="edits", title="Edits", part="evidence", blocks=[edits_table(record.edits), classes])


def edited_data_section(source: Source[EditRecord]) -> Section:
    """The data as they were, and what was written."""
    record = source.record
    written = Facts(
        [
            ("Labels", record.table),
            ("Drawn by", record.unit),
            ("Seed", str(record.seed)),
            ("Strength", f"{record.strength:g}"),
        ]
    )
    blocks: list[Block] = [Facts(data_facts(record.dataset)), written]
    return Section(name="data", title="Data", part="checks", blocks=blocks)


def nothing_edited(source: Source[EditRecord]) -> Caveat | None:
    """The share is too small for these images."""
    record = source.record
    if record.num_edited:
        return None
    return Caveat("No image was edited: the share of these images is below half an image. Raise --share.")


def cannot_be_seen(source: Source[EditRecord]) -> Caveat | None:
    """Rounding hides it."""
    lost = lost_in_rounding(source.record.edits)
    return None if lost is None else Caveat(lost)


def can_be_seen(source: Source[EditRecord]) -> Caveat | None:
    """A person would notice."""
    names = [row.edit for row in source.record.edits if row.num_images and row.psnr < VISIBLE_DECIBELS]
    return Caveat(f"A person sees {joined(names)} (PSNR below 40 dB).") if names else None


def patients_are_numbers(source: Source[EditRecord]) -> Caveat | None:
    """What was not passed on."""
    if source.record.dataset.num_groups is None:
        return None
    return Caveat(
        "Groups are numbers in the table that was written; other columns are as they were, whatever they say."
    )


EDIT_CAVEATS: tuple[CaveatOf[EditRecord], ...] = (nothing_edited, cannot_be_seen, can_be_seen, patients_are_numbers)
"""The most severe first, in the order of ``sections._verdict``."""


def after_edit(source: Source[EditRecord]) -> Following:
    """To rank models for the edited images."""
    record = source.record
    has_one_class = recorded_task(record.dataset).partitions
    labels = "label" if has_one_class else ",".join(record.dataset.class_names)
    flags: list[Flag] = [("--label-column", labels)]
    if has_one_class and record.classes[0].merged is None:
        in_order = record.dataset.class_names == sorted(record.dataset.class_names)
        flags += [] if in_order else [("--class-names", f"{source.typed.out}/classes.txt")]
        flags += [("--ordinal", None)] if record.dataset.ordinal else []
    flags += [] if record.dataset.num_groups is None else [("--group-column", "group")]
    line = source.typed.then("rank", f"{source.typed.out}/{record.table}", flags=flags, carried=[])
    return with_models_here(line, "for the edited images")


EDIT = Kind(
    EditRecord,
    edit_heading,
    (edit_verdict_section, edits_section, edited_data_section, provenance_section, references_section),
    terminal=(edits_section, edit_verdict_section),
)
REPORT = (EDIT, CONTACT_SHEETS)
