"""What was done to a data set, in words."""

from __future__ import annotations

from crossgraft.records import EditRecord
from crossgraft.words.formatting import counted, joined

LEAST_RMS = 0.3
"""Grey levels; an edit that changes less is lost in rounding to 8 bits."""


def answer_in_words(record: EditRecord) -> str:
    """How many images were edited, and how."""
    what = joined([row.edit for row in record.edits])
    of_all = f"{counted(record.num_edited, 'image')} of {record.dataset.num_images}"
    return f"{of_all} of {record.dataset.name} were edited with {what}."


def lost_in_rounding(record: EditRecord) -> list[str]:
    """Edits that 8-bit images do not show."""
    return [row.edit for row in record.edits if row.num_images and row.rms < LEAST_RMS]
