"""Edits of images, as the report of an edit and that of a fine-tuning show them."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.edit.record import EditedImagesRecord, EditRow
from crossgraft.edit.words import edits_and_advice, named
from crossgraft.report.blocks import Block, Facts
from crossgraft.report.tables import Column, Table, number, table_of, whole, words
from crossgraft.report.verdict import Caveat
from crossgraft.words.formatting import NumberFormat, joined, small_percent

_LEVELS = NumberFormat(decimals=2)
_DECIBELS = NumberFormat(decimals=1)


def edits_table(rows: Sequence[EditRow]) -> Table:
    """Each edit with what it changed."""
    return table_of(
        rows,
        [
            (Column("Edit"), lambda row: words(row.edit)),
            (Column("Kind"), lambda row: words("takes cues away" if row.leaf is None else row.leaf)),
            (Column("Images", numeric=True), lambda row: whole(row.num_images)),
            (Column("rms", numeric=True), lambda row: number(row.rms, _LEVELS)),
            (Column("Changed", numeric=True), lambda row: words(small_percent(row.share_changed))),
            (Column("PSNR, dB", numeric=True), lambda row: number(row.psnr, _DECIBELS)),
        ],
        caption="Edits",
        file_name="edits",
        notes=[
            "rms: root mean square of what changed, in grey levels of 8 bits. Changed: share of the samples. PSNR: below 40 dB a "
            "person sees it."
        ],
    )


def edited_blocks(edits: EditedImagesRecord | None) -> list[Block]:
    """What was done to the images of a fine-tuning, and to how many of each part; nothing where they are as they came."""
    if edits is None:
        return []
    parts = table_of(
        edits.parts,
        [
            (Column("Part"), lambda row: words(row.name)),
            (Column("Images", numeric=True), lambda row: whole(row.num_images)),
            (Column("Edited", numeric=True), lambda row: whole(row.num_edited)),
        ],
        caption="Edited images of each part",
        file_name="edited-parts",
    )
    drawn = [
        ("Edited parts", joined(edits.chosen_parts)),
        ("Edited classes", "all" if edits.among is None else joined(edits.among)),
        ("Edited share", f"{edits.share:g}, drawn by {edits.unit}"),
        ("Strength of the edits", f"{edits.strength:g}"),
        ("Seed of the edits", str(edits.seed)),
    ]
    return [edits_table(edits.edits), parts, Facts(drawn)]


def edited_with(edits: EditedImagesRecord | None) -> list[str]:
    """What stands in the line below the title."""
    return [] if edits is None or not edits.num_edited else [f"images edited with {named(edits.edits)}"]


def edited_caveat(edits: EditedImagesRecord | None) -> Caveat | None:
    """The numbers are about edited images, and nothing edits those that are predicted."""
    return None if edits is None else Caveat(edits_and_advice(edits))
