"""What edits do to a few images, in words."""

from __future__ import annotations

import math

from crossgraft.edit.contact_sheets_record import ContactSheetsRecord
from crossgraft.edit.words import LEAST_RMS
from crossgraft.words.formatting import counted, small_percent


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
