"""Similarity that was to be kept, in words."""

from __future__ import annotations

from crossgraft.records import KeepRecord
from crossgraft.words.formatting import NumberFormat

_NUMBERS = NumberFormat(decimals=2)


def missed_in_words(keep: KeepRecord) -> str:
    """What was reached instead, and what to do."""
    found = [value for value in keep.found if value is not None]
    if not found:
        reason = "there are too few images, or features have collapsed"
        return f"--keep {keep.target:g}: the similarity on val is not defined; {reason}."
    low, high = min(found), max(found)
    reached = _NUMBERS(low) if len(found) == 1 else f"{_NUMBERS(low)} to {_NUMBERS(high)}"
    advice = (
        "Give more epochs, a lower --learning-rate or --batch-norm frozen."
        if low < keep.target
        else "The features keep more than that by themselves; a higher --learning-rate would move them."
    )
    return f"--keep {keep.target:g} was not reached: the model that was kept has a debiased CKA of {reached} on val. {advice}"
