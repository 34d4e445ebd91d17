"""What limits a comparison of fine-tunings, and what to type next."""

from __future__ import annotations

from pathlib import PurePosixPath

from crossgraft.edit.page_edits import edited_caveat
from crossgraft.metrics.page import looked_at_before
from crossgraft.options.models import CodeOptions
from crossgraft.options.typed_command import RUN
from crossgraft.report.source import Source
from crossgraft.report.verdict import PREDICT_IMAGES, Caveat, CaveatOf, Following, leakage_not_checked, unsound_data
from crossgraft.variants.record import FineTuningComparisonRecord
from crossgraft.variants.words import batch_norms_differ, best_may_be_guessing
from crossgraft.words.formatting import counted, joined

_ENOUGH_SEEDS = 3  # from so many on intervals are those of seeds


def may_be_guessing(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """The interval of the best contains what guessing gives."""
    doubt = best_may_be_guessing(source.record)
    return None if doubt is None else Caveat(doubt)


def few_seeds(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Too few trainings to see how much a seed changes."""
    record, typed = source.record, source.typed
    if len(record.seeds) >= _ENOUGH_SEEDS:
        return None
    is_known = typed.verb == "tune" and typed.has("--compare")
    several = typed.again(("--seeds", str(_ENOUGH_SEEDS)))
    remedy = Following(several, "to see how much another seed changes") if is_known else None
    return Caveat(record.interval_words, remedy)


def batch_norm_differs(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """A CKA also falls with moved statistics, which some variants have and others have not."""
    text = batch_norms_differ(source.record)
    return None if text is None else Caveat(text)


def failed_variants(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Variants without a value are in no difference."""
    failed = [row.variant for row in source.record.variants if row.num_failed]
    return Caveat(f"Not every training ended with a model: {joined(failed)}.") if failed else None


def best_of_many(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """The best was found on the images that its value is of; where looks were counted, that says it."""
    if looked_at_before(source) is not None:
        return None
    number = sum(row.metric.value is not None for row in source.record.variants)
    if number < 2:
        return None
    ways = counted(number, "way", "ways")
    return Caveat(f"The best of {ways} was found on these test images, so its value is a little too high.")


def edited_images(source: Source[FineTuningComparisonRecord]) -> Caveat | None:
    """Images were edited."""
    return edited_caveat(source.record.edits)


COMPARISON_CAVEATS: tuple[CaveatOf[FineTuningComparisonRecord], ...] = (
    unsound_data,
    may_be_guessing,
    failed_variants,
    few_seeds,
    looked_at_before,
    best_of_many,
    batch_norm_differs,
    edited_images,
    leakage_not_checked,
)
"""The most severe first, in the order of ``sections._verdict``."""


def after_comparison(source: Source[FineTuningComparisonRecord]) -> Following | None:
    """To predict with the first model of the best variant; None where no model was kept."""
    record, typed = source.record, source.typed
    best = next((row.variant for row in record.variants if row.metric.value is not None), None)
    of_best = (row.folder for row in record.trainings if row.variant == best and row.state == "done")
    folder = next((folder for folder in of_best if folder is not None), None)
    if folder is None:
        return None
    run = PurePosixPath(typed.out if typed.verb == "tune" else RUN) / folder
    return Following(typed.then("predict", str(run), PREDICT_IMAGES, carried=[CodeOptions]), f"to use {best}")
