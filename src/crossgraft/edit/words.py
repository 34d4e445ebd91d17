"""What was done to images, in words."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.edit.record import ALL_PARTS, EditedImagesRecord, EditRecord, EditRow
from crossgraft.words.formatting import counted, joined

LEAST_RMS = 0.3
"""Grey levels; an edit that changes less is lost in rounding to 8 bits."""

_EDIT_FIRST = "Images that are predicted are not edited: edit them first (crossgraft edit) where they should be alike."


def answer_in_words(record: EditRecord) -> str:
    """How many images were edited, and how."""
    of_all = f"{counted(record.num_edited, 'image')} of {record.dataset.num_images}"
    return f"{of_all} of {record.dataset.name} were edited with {named(record.edits)}."


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
