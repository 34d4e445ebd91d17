"""What was edited, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crossgraft.edit.record import ALL_PARTS, ContactSheetsRecord, EditedImagesRecord, EditRecord, EditRow
from crossgraft.words.formatting import count, counted, joined, small_percent

LEAST_RMS = 0.3
"""Grey levels; an edit that changes less is lost in rounding to 8 bits."""


_EDIT_FIRST = "Images that are predicted are not edited: edit them first (crossgraft edit) where they should be alike."


def answer_in_words(record: EditRecord) -> str:
    """How many images were edited, and how."""
    edited, images = record.num_edited, counted(record.dataset.num_images, "image")
    which = f"All {images}" if edited == record.dataset.num_images > 1 else f"{count(edited)} of {images}"
    return f"{which} of {record.dataset.name} {'was' if edited == 1 else 'were'} edited with {named(record.edits)}."


def named(edits: Sequence[EditRow]) -> str:
    """The edits as they were written."""
    return joined([row.edit for row in edits])


def lost_in_rounding(edits: Sequence[EditRow]) -> str | None:
    """That 8-bit images do not show an edit; None where they do."""
    return little_changed([row.edit for row in edits if row.num_images and row.rms < LEAST_RMS])


def little_changed(lost: Sequence[str]) -> str | None:
    """The same of the names of edits below ``LEAST_RMS``."""
    if not lost:
        return None
    verb = "changes" if len(lost) == 1 else "change"
    return f"{joined(list(lost))} {verb} less than {LEAST_RMS} grey levels: that is lost where images are rounded to 8 bits."


def edited_images_in_words(record: EditedImagesRecord) -> str:
    """Which images a model saw edited, with what, and how strong that is."""
    if not record.num_edited:
        return f"No image was edited with {named(record.edits)}: the share {record.share:g} of these images is none."
    strengths = joined([f"{row.rms:.3g}" for row in record.edits])
    parts = [f"{row.num_edited} of {row.num_images} {row.name}" for row in record.parts if row.name != ALL_PARTS]
    which = joined(parts) or f"{record.num_edited} of {sum(row.num_images for row in record.parts)}"
    lost = lost_in_rounding(record.edits)
    return (
        f"Images were edited with {named(record.edits)} (rms {strengths} of 255 grey levels): {which}."
        f"{'' if lost is None else f' {lost}'}"
    )


def edits_and_advice(record: EditedImagesRecord) -> str:
    """Which images a model saw edited, and what to do before images are predicted."""
    about = edited_images_in_words(record)
    return f"{about} {_EDIT_FIRST}" if record.was_learned_from else about


def predicted_unedited(record: EditedImagesRecord | None) -> str | None:
    """That nothing edits the images that are predicted; None where the model learned from images as they came."""
    if record is None or not record.was_learned_from:
        return None
    return f"The model learned from images edited with {named(record.edits)}. {_EDIT_FIRST}"


def sheets_in_words(record: ContactSheetsRecord) -> str:
    """How many edits can be put into the images."""
    possible = sum(row.num_images == len(record.images) for row in record.sheets)
    shown = f"{counted(len(record.images), 'image')} of {record.dataset.name}"
    if possible == len(record.sheets):
        return f"All {possible} edits can be put into the {shown} that stand on the sheets."
    return f"{possible} of {counted(len(record.sheets), 'edit')} can be put into all of the {shown} that stand on the sheets."


def change_in_words(rms: float | None, share: float | None, psnr: float | None, touched: float | None) -> str:
    """What an edit changed; arguments as in ``ContactSheetRow``."""
    if rms is None or share is None or psnr is None:
        return "Cannot be put into these images."
    if rms == 0:
        return "Changes nothing in these images."
    lost = ", less than rounding to 8 bits" if rms < LEAST_RMS else ""
    decibels = "" if math.isinf(psnr) else f", PSNR {psnr:.1f}\N{NO-BREAK SPACE}dB"
    inside = "" if touched is None else f", inside a mask of {small_percent(touched)} of the image"
    return f"Changes {rms:.2f} grey levels (rms{lost}), {small_percent(share)} of the samples{inside}{decibels}."


def scale_in_words(limit: float) -> tuple[str, str]:
    """Both ends of the scale of colours, in grey levels."""
    return (f"−{limit:g}", f"+{limit:g}") if limit else ("0", "0")


def faint_edits(record: ContactSheetsRecord) -> list[str]:
    """Edits that change less than rounding to 8 bits does."""
    return [row.edit for row in record.sheets if row.rms is not None and row.rms < LEAST_RMS]
