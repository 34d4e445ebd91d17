"""What limits the answer of a selection, and what to type next."""

from __future__ import annotations

from crossgraft.metrics.page import looked_at_before
from crossgraft.metrics.words import doubt_in_words
from crossgraft.options.models import CodeOptions
from crossgraft.report.source import Source
from crossgraft.report.verdict import PREDICT_IMAGES, Caveat, CaveatOf, Following, leakage_not_checked, unsound_data
from crossgraft.select.record import SelectionRecord
from crossgraft.select.words import num_choices
from crossgraft.words.formatting import counted, joined, percent


def val_tells_nothing(source: Source[SelectionRecord]) -> Caveat | None:
    """The choice stands on what is known elsewhere alone."""
    reason = source.record.plan.val_too_small
    if reason is None:
        return None
    return Caveat(
        f"{reason} Only the first model of the order was trained: what is known of the models elsewhere decided."
    )


def may_be_guessing(source: Source[SelectionRecord]) -> Caveat | None:
    """On test the model may be no better than guessing."""
    record = source.record
    found = record.metric(record.primary_metric)
    doubt = None if found is None else doubt_in_words(found, num_choices(record))
    return None if doubt is None else Caveat(doubt)


def nothing_known(source: Source[SelectionRecord]) -> Caveat | None:
    """Nobody has results of these weights, and not all were trained."""
    candidates = source.record.candidates
    if any(row.known_from for row in candidates) or not any(row.state == "not trained" for row in candidates):
        return None
    if len({row.expected for row in candidates}) == 1:
        return Caveat("Nothing is known of these models elsewhere, so that they were tried in the order of their size.")
    return Caveat(
        "No results of exactly these weights on other data are known, so that their order is that of ImageNet top-1, which "
        "foresees little."
    )


def failed_models(source: Source[SelectionRecord]) -> Caveat | None:
    """Some were not compared."""
    failed = [row for row in source.record.candidates if row.state == "failed"]
    if not failed:
        return None
    return Caveat(
        f"{counted(len(failed), 'model')} failed and took no further part: {joined([row.name for row in failed])}."
    )


def val_does_not_tell_apart(source: Source[SelectionRecord]) -> Caveat | None:
    """Another one that was trained may be the better one."""
    record = source.record
    others = [row for row in record.trained if row.probability_better is not None and row.probability_better > 0.05]
    if not others or record.ending == "limit of val":
        return None
    first = max(others, key=lambda row: row.probability_better or 0.0)
    return Caveat(
        f"{first.name} may be better than {record.selected} with a chance of {percent(first.probability_better or 0.0)}"
        + (f", and {counted(len(others) - 1, 'other model')} with more than 5 %." if len(others) > 1 else ".")
    )


def not_all_were_trained(source: Source[SelectionRecord]) -> Caveat | None:
    """Some models did not fit into the budget."""
    number = sum(row.state == "not trained" for row in source.record.candidates)
    if number == 0 or source.record.ending != "budget":
        return None
    return Caveat(f"{counted(number, 'model')} did not fit into the budget and may be better.")


SELECTION_CAVEATS: tuple[CaveatOf[SelectionRecord], ...] = (
    unsound_data,
    val_tells_nothing,
    may_be_guessing,
    nothing_known,
    failed_models,
    looked_at_before,
    val_does_not_tell_apart,
    not_all_were_trained,
    leakage_not_checked,
)
"""The most severe first, in the order of ``sections._verdict``."""


def after_selection(source: Source[SelectionRecord]) -> Following:
    """To predict with the model."""
    typed = source.typed
    line = typed.then("predict", typed.out, PREDICT_IMAGES, carried=[CodeOptions])
    return Following(line, "to use it")
