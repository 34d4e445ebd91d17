"""Domains that training never saw: in words, as a table and as a figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import NamedTuple, TypeVar

from crossgraft.metrics.words import guessing, metric_name_in_words
from crossgraft.records.base import Record
from crossgraft.report.blocks import Block, Figure, Folded, Items, Paragraph, Section
from crossgraft.report.explorer import Explorer
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, Table, interval, number, table_of, whole, words
from crossgraft.tasks import num_choices
from crossgraft.tune.planning.leave_out import ORACLE, ORACLE_MARK
from crossgraft.tune.plots import DomainRow, domains_figure
from crossgraft.tune.record import DomainMetricRecord, TuningRecord, UnseenDomainsRecord
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
    sentences = [f"{unseen.title} {as_text(first.value)} ({_ends(first.low, first.high, as_text)}{chance}), {where}."]
    if gap is not None and gap.value is not None and seen is not None:
        which = "on the others, which it saw" if not unseen.is_each else "on domains that were seen"
        less = "less" if gap.value >= 0 else "more"
        low, high = (gap.low, gap.high) if gap.value >= 0 or gap.low is None or gap.high is None else (-gap.high, -gap.low)
        ends = _ends(low, high, as_text)
        that = "That" if gap.note is None else "Over the domains that have both, it"
        sentences.append(f"{that} is {as_text(abs(gap.value))} {less} than the {as_text(seen.value)} {which} ({ends}).")
    worst = unseen.worst
    if worst is not None:
        sentences.append(f"The worst is {worst.domain} with {as_text(worst.value)} ({_ends(worst.low, worst.high, as_text)}).")
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


def _ends(low: float | None, high: float | None, as_text: NumberFormat) -> str:
    if low is None or high is None:
        return "no interval"
    return f"95\N{NO-BREAK SPACE}% interval {as_text(low)} to {as_text(high)}"


_MOST_DRAWN = 24
RecordT = TypeVar("RecordT", bound=Record)


def marks_oracle(build: Callable[[Source[RecordT]], Section | None]) -> Callable[[Source[RecordT]], Section | None]:
    """Every table of a section says so where models were picked on images of the domain that they are tested on."""

    @wraps(build)
    def marked(source: Source[RecordT]) -> Section | None:
        section = build(source)
        if section is None or not getattr(source.record, "is_oracle", False):
            return section
        return replace(section, blocks=[_marked(block) for block in section.blocks])

    return marked


def _marked(block: Block) -> Block:
    if isinstance(block, Table):
        return replace(block, caption=block.caption + ORACLE_MARK)
    if isinstance(block, Explorer) and block.crossed is not None:
        csv = replace(block.crossed.csv, caption=block.crossed.csv.caption + ORACLE_MARK)
        return replace(block, crossed=block.crossed._replace(csv=csv))
    return replace(block, blocks=[_marked(each) for each in block.blocks]) if isinstance(block, Folded) else block


_NOTHING = DomainMetricRecord(value=None)


class _Line(NamedTuple):
    """One row of the table."""

    name: str
    num_images: int | None
    num_groups: int | None
    unseen: DomainMetricRecord
    seen: DomainMetricRecord
    gap: DomainMetricRecord
    is_of_all: bool = False


@marks_oracle
def unseen_domains_section(source: Source[TuningRecord]) -> Section | None:
    """Each domain that was left out, their mean, the worst, and the gap to images of domains that were seen; None without."""
    record = source.record
    unseen = record.unseen_domains
    if unseen is None:
        return None
    blocks: list[Block] = [Paragraph(ORACLE)] if unseen.is_oracle else []
    if len(unseen.domains) <= _MOST_DRAWN:
        blocks.append(_figure(unseen, num_choices=num_choices(record.dataset), identifier=f"{source.prefix}domains"))
    return Section(
        name="domains",
        title="Domains that training never saw",
        part="evidence",
        blocks=[*blocks, _table(unseen), Items(about_intervals(unseen))],
    )


def _figure(unseen: UnseenDomainsRecord, *, num_choices: int, identifier: str) -> Figure:
    rows = [
        DomainRow(each.domain, Interval.of(each.unseen), None if each.seen is None else Interval.of(each.seen))
        for each in unseen.domains
    ]
    if unseen.mean is not None:
        rows.append(DomainRow("mean", Interval.of(unseen.mean), None if unseen.seen is None else Interval.of(unseen.seen)))
    guess = guessing(unseen.metric, num_choices)
    drawing = domains_figure(rows, x_label=f"{unseen.title} on test", identifier=identifier, guess=guess)
    dashed = "" if guess is None else " The dashed line is guessing."
    seen = "; the square is the same model on images of the others that were set apart" if any(r.seen for r in rows) else ""
    caption = (
        f"A row is one {unseen.column}, and the model that never saw it: the dot is that model there{seen}. Lines are 95 % "
        f"intervals, numbers on the right the values.{dashed}"
    )
    return Figure([drawing], caption=caption)


def _table(unseen: UnseenDomainsRecord) -> Table:
    lines = [
        _Line(each.domain, each.num_unseen, each.num_groups, each.unseen or _NOTHING, each.seen or _NOTHING, each.gap or _NOTHING)
        for each in unseen.domains
    ]
    if unseen.is_each:
        of_all = (unseen.mean or _NOTHING, unseen.seen or _NOTHING, unseen.gap or _NOTHING)
        lines.append(_Line("mean", None, None, *of_all, is_of_all=True))
    if unseen.worst is not None:
        lines.append(_Line(f"worst: {unseen.worst.domain}", None, None, unseen.worst, _NOTHING, _NOTHING, is_of_all=True))
    as_text = format_of([each for line in lines for each in (line.unseen, line.seen)])
    has_groups = any(line.num_groups is not None for line in lines)
    has_seen = any(line.seen.value is not None for line in lines)
    of_seen = Column("95 % interval", numeric=True, csv_titles=("seen low", "seen high"), page_only=True)
    of_gap = Column("95 % interval", numeric=True, csv_titles=("gap low", "gap high"))
    return table_of(
        lines,
        [
            (Column(unseen.column.capitalize()), lambda line: words(line.name, strong=line.is_of_all)),
            (Column("Images", numeric=True), lambda line: whole(line.num_images)),
            *([(Column("Groups", numeric=True, page_only=True), lambda line: whole(line.num_groups))] if has_groups else []),
            (Column("Never seen", numeric=True), lambda line: number(line.unseen.value, as_text)),
            (INTERVAL, lambda line: interval(line.unseen.low, line.unseen.high, as_text)),
            *(
                [
                    (Column("Seen", numeric=True), lambda line: number(line.seen.value, as_text)),
                    (of_seen, lambda line: interval(line.seen.low, line.seen.high, as_text)),
                    (Column("Gap", numeric=True), lambda line: number(line.gap.value, as_text)),
                    (of_gap, lambda line: interval(line.gap.low, line.gap.high, as_text)),
                ]
                if has_seen
                else []
            ),
        ],
        caption=f"{unseen.title} on each {unseen.column} that training never saw",
        file_name="domains",
        notes=list(_notes(unseen, lines)),
    )


def _notes(unseen: UnseenDomainsRecord, lines: Sequence[_Line]) -> dict[str, None]:
    notes: dict[str, None] = {}
    for each in unseen.domains:
        if each.reason is not None:
            notes[f"{each.domain}: {each.reason.rstrip('.')}."] = None
        if each.num_excluded:
            others = counted(each.num_excluded, "image")
            notes[f"{each.domain}: {others} of other domains had no part, because their group has images here, too."] = None
    for line in lines:
        for about, of_it in (("", line.unseen), (" (seen)", line.seen), (" (gap)", line.gap)):
            if of_it.note is not None:
                notes[f"{line.name}{about}: {of_it.note.rstrip('.')}."] = None
            if of_it.reason is not None:
                notes[f"{line.name}{about}: {of_it.reason.rstrip('.')}."] = None
    return notes
