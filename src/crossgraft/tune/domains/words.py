"""Domains that training never saw, in words."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.metrics.words import guessing, metric_name_in_words
from crossgraft.tune.planning.leave_out import ORACLE
from crossgraft.tune.record import DomainMetricRecord, UnseenDomainsRecord
from crossgraft.words.formatting import NumberFormat, counted


def format_of(records: Sequence[DomainMetricRecord | None]) -> NumberFormat:
    """The decimals of these numbers: at least two, as their intervals justify."""
    known = [each for each in records if each is not None]
    widths = [each.high - each.low for each in known if each.low is not None and each.high is not None]
    chosen = NumberFormat.for_column([each.value for each in known], interval_widths=widths)
    return NumberFormat(decimals=max(chosen.decimals, 2))


def unseen_in_words(unseen: UnseenDomainsRecord, *, num_choices: int) -> str:
    """The mean, the worst domain and the gap; of one domain its value and the gap.

    Args:
        unseen: What was measured.
        num_choices: Answers that guessing chooses among.
    """
    first = unseen.mean if unseen.is_each else unseen.domains[0].unseen
    gap = unseen.gap if unseen.is_each else unseen.domains[0].gap
    seen = unseen.seen if unseen.is_each else unseen.domains[0].seen
    as_text = format_of([first, unseen.worst, seen])
    where = (
        f"mean over {_domains_of_mean(unseen)} by {unseen.column}, each measured by a model that never saw it"
        if unseen.is_each
        else f"on {counted(unseen.domains[0].num_unseen, 'image')} of {unseen.column} {unseen.domains[0].domain}, which training "
        "never saw"
    )
    if first is None or first.value is None:
        reason = (first.reason if first is not None else None) or unseen.domains[0].reason or "it is defined on no domain"
        return f"{unseen.title} has no value {where}: {reason.rstrip('.')}."
    guess = guessing(unseen.metric, num_choices)
    chance = "" if guess is None else f"; guessing gives {guess:.2f}"
    sentences = [f"{unseen.title} {as_text(first.value)} ({_ends(first, as_text)}{chance}), {where}."]
    if gap is not None and gap.value is not None and seen is not None:
        which = "on the others, which it saw" if not unseen.is_each else "on domains that were seen"
        less = "less" if gap.value >= 0 else "more"
        low, high = (gap.low, gap.high) if gap.value >= 0 or gap.low is None or gap.high is None else (-gap.high, -gap.low)
        ends = (
            "no interval" if low is None or high is None else f"95\N{NO-BREAK SPACE}% interval {as_text(low)} to {as_text(high)}"
        )
        sentences.append(f"That is {as_text(abs(gap.value))} {less} than the {as_text(seen.value)} {which} ({ends}).")
    worst = unseen.worst
    if worst is not None:
        sentences.append(f"The worst is {worst.domain} with {as_text(worst.value)} ({_ends(worst, as_text)}).")
    return " ".join([*([ORACLE] if unseen.is_oracle else []), *sentences])


def about_intervals(unseen: UnseenDomainsRecord) -> list[str]:
    """What intervals say, and what they do not."""
    name = metric_name_in_words(unseen.metric)
    lines = ["Intervals are about other images of these domains, not about other domains."]
    if unseen.spread is not None:
        values = [each.unseen.value for each in unseen.domains if each.unseen is not None and each.unseen.value is not None]
        lines.append(
            f"How domains differ: from {min(values):.2f} to {max(values):.2f}, standard deviation {unseen.spread:.2f}. A new one "
            "may lie outside of that, and the trainings share images, so no interval is given for it."
        )
    if unseen.worst is not None and unseen.worst.low is not None:
        known = sum(each.unseen is not None and each.unseen.value is not None for each in unseen.domains)
        lines.append(
            f"The interval of the worst holds the lowest true {name} of all {known} domains, whichever it is: each of them has "
            f"one of {100 - 5 / known:.3g}\N{NO-BREAK SPACE}% for it."
        )
    if unseen.gap is not None or unseen.domains[0].gap is not None:
        lines.append(
            "Gap: images of domains that training saw, none of which trained or picked the model, minus the domain that it never "
            "saw. Domains differ in difficulty, too, so a gap of one domain is not all due to the shift."
        )
    return lines


def _domains_of_mean(unseen: UnseenDomainsRecord) -> str:
    """How many domains the mean is of: those in which the metric is defined."""
    known = sum(each.unseen is not None and each.unseen.value is not None for each in unseen.domains)
    every = counted(len(unseen.domains), "domain")
    return every if known in (0, len(unseen.domains)) else f"{known} of {every}"


def _ends(record: DomainMetricRecord, as_text: NumberFormat) -> str:
    if record.low is None or record.high is None:
        return "no interval"
    return f"95\N{NO-BREAK SPACE}% interval {as_text(record.low)} to {as_text(record.high)}"
