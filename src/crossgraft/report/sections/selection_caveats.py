"""What limits the answer of a selection, and what to type next."""

from __future__ import annotations

import math

from crossgraft.options import PredictOptions
from crossgraft.options.models import CodeOptions
from crossgraft.records import SelectionRecord
from crossgraft.report.sections._verdict import (
    PREDICT_IMAGES,
    Caveat,
    CaveatOf,
    Following,
    leakage_not_checked,
    looked_at_before,
    unsound_data,
)
from crossgraft.report.source import Source
from crossgraft.words.formatting import counted, joined, percent
from crossgraft.words.metric_words import doubt_in_words, metric_name_in_words
from crossgraft.words.selection_words import num_choices


def val_tells_nothing(source: Source[SelectionRecord]) -> Caveat | None:
    """The choice stands on the prior alone."""
    reason = source.record.plan.val_too_small
    if reason is None:
        return None
    return Caveat(f"{reason} Nothing was tried: what is known of the models elsewhere, and their cost, decided.")


def may_be_guessing(source: Source[SelectionRecord]) -> Caveat | None:
    """On test the model may be no better than guessing."""
    record = source.record
    found = record.metric(record.primary_metric)
    doubt = None if found is None else doubt_in_words(found, num_choices(record))
    return None if doubt is None else Caveat(doubt)


def nothing_known(source: Source[SelectionRecord]) -> Caveat | None:
    """Nobody has results of these weights."""
    if len(source.record.candidates) == 1 or any(row.known_from for row in source.record.candidates):
        return None
    return Caveat(
        "No results of exactly these weights on other data are known, so that only trials, relatives and ImageNet spoke."
    )


def failed_models(source: Source[SelectionRecord]) -> Caveat | None:
    """Some were not compared."""
    failed = [row for row in source.record.candidates if row.state == "failed"]
    if not failed:
        return None
    return Caveat(
        f"{counted(len(failed), 'model')} failed and took no further part: {joined([row.name for row in failed])}."
    )


def may_not_be_best(source: Source[SelectionRecord]) -> Caveat | None:
    """Another one is nearly as likely the best."""
    record = source.record
    others = [row for row in record.candidates if row.probability_better is not None and row.probability_better > 0.05]
    if not others:
        return None
    first = max(others, key=lambda row: row.probability_better or 0.0)
    return Caveat(
        f"{first.name} may be better than {record.selected} with a chance of {percent(first.probability_better or 0.0)}"
        + (f", and {counted(len(others) - 1, 'other model')} with more than 5 %." if len(others) > 1 else ".")
    )


def another_has_a_higher_val(source: Source[SelectionRecord]) -> Caveat | None:
    """The whole training of another model ended better than that of the selected one."""
    record = source.record
    own = record.candidate(record.selected).val
    ended = [(row.val, row.name) for row in record.candidates if row.state == "finished" and row.val is not None]
    ended = [each for each in ended if not math.isnan(each[0])]
    if (
        own is None
        or math.isnan(own)
        or not ended
        or record.selected != record.leader
        or record.selection_metric == "loss"
    ):
        return None
    highest, name = max(ended)
    if highest <= own:
        return None
    return Caveat(
        f"{name} ended with a higher {metric_name_in_words(record.selection_metric)} of val ({highest:.3f}; {record.selected}: "
        f"{own:.3f}). One training each differs by chance; with its earlier trials and what is known from elsewhere, "
        f"{record.selected} is expected to be better."
    )


SELECTION_CAVEATS: tuple[CaveatOf[SelectionRecord], ...] = (
    unsound_data,
    val_tells_nothing,
    may_be_guessing,
    nothing_known,
    failed_models,
    another_has_a_higher_val,
    looked_at_before,
    may_not_be_best,
    leakage_not_checked,
)
"""The most severe first, in the order of ``sections._verdict``."""


def after_selection(source: Source[SelectionRecord]) -> Following:
    """To predict with the model."""
    typed = source.typed
    line = typed.then("predict", typed.out, PREDICT_IMAGES, options=PredictOptions, carried=[CodeOptions])
    return Following(line, "to use it")
