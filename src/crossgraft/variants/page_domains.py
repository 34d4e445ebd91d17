"""Variants on domains that training never saw: one row each, and what differs from the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from crossgraft.report.blocks import Block, Folded, Items, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, interval, number, table_of, words
from crossgraft.tune.page_domains import marks_oracle
from crossgraft.tune.planning.leave_out import ORACLE
from crossgraft.variants.record import (
    ComparedDomainsRecord,
    ComparedOnDomainsRecord,
    ComparedVariantRecord,
    DifferenceRecord,
    FineTuningComparisonRecord,
    ValueRecord,
)
from crossgraft.variants.words import NUMBERS

_NOTHING, _NO_DIFFERENCE = ValueRecord(value=None), DifferenceRecord(value=None)
_MOST_COLUMNS = 12


class _Pair(NamedTuple):
    """One variant that has been measured on the domains."""

    variant: ComparedVariantRecord
    unseen: ComparedDomainsRecord


class _Difference(NamedTuple):
    """One variant minus the first on one domain, or on the worst."""

    variant: str
    where: str
    difference: DifferenceRecord


@marks_oracle
def compared_domains_section(source: Source[FineTuningComparisonRecord]) -> Section | None:
    """Every variant on every domain that was left out; None where none was."""
    record = source.record
    about = record.domains
    pairs = [_Pair(row, row.unseen) for row in record.variants if row.unseen is not None]
    if about is None or not pairs:
        return None
    blocks: list[Block] = [Paragraph(ORACLE)] if about.is_oracle else []
    blocks += [_table(record, about, pairs), Items(_notes(about, len(record.seeds), pairs))]
    lines = [
        _Difference(pair.variant.named, each.domain if number_ is not None else f"worst (here {each.domain})", each.difference)
        for pair in pairs
        for number_, each in [*enumerate(pair.unseen.domains), (None, pair.unseen.worst)]
        if each is not None and each.difference is not None
    ]
    if lines and about.is_each:
        blocks.append(Folded(f"Each domain, minus {about.first}", [_differences(about, lines)]))
    return Section(name="domains", title="Domains that training never saw", part="evidence", blocks=blocks)


def _table(record: FineTuningComparisonRecord, about: ComparedOnDomainsRecord, pairs: list[_Pair]) -> Table:
    names = list(dict.fromkeys(each.domain for pair in pairs for each in pair.unseen.domains))
    shown = names if len(names) <= _MOST_COLUMNS and about.is_each else []
    main = f"Mean over {about.column}" if about.is_each else about.left_out[0]
    of_difference = Column("95 % interval", numeric=True, csv_titles=("difference low", "difference high"))
    columns: list[tuple[Column, Callable[[_Pair], Cell]]] = [
        (Column("Variant"), lambda pair: words(pair.variant.named)),
        (Column(main, numeric=True), lambda pair: number(pair.unseen.mean.value, NUMBERS, strong=True)),
        (INTERVAL, lambda pair: interval(pair.unseen.mean.low, pair.unseen.mean.high, NUMBERS)),
        (Column(f"Minus {about.first}", numeric=True), lambda pair: number(_minus(pair).value, NUMBERS)),
        (of_difference, lambda pair: interval(_minus(pair).low, _minus(pair).high, NUMBERS)),
    ]
    if any(pair.unseen.worst is not None for pair in pairs):
        columns.append((Column("Worst", numeric=True), _worst))
    if any(pair.unseen.gap is not None for pair in pairs):
        columns.append((Column("Gap", numeric=True), lambda pair: number((pair.unseen.gap or _NOTHING).value, NUMBERS)))
    columns += [(Column(name, numeric=True, page_only=True), _of_domain(name)) for name in shown]
    return table_of(
        pairs,
        columns,
        caption=f"{record.metric_title} on {about.column}s that training never saw, the best first",
        file_name="domains",
        notes=[f"{pair.variant.named}: {_minus(pair).reason}." for pair in pairs if _minus(pair).reason is not None],
    )


def _of_domain(name: str) -> Callable[[_Pair], Cell]:
    return lambda pair: number(next((each.value.value for each in pair.unseen.domains if each.domain == name), None), NUMBERS)


def _worst(pair: _Pair) -> Cell:
    worst = pair.unseen.worst
    if worst is None:
        return number(None, NUMBERS)
    return replace(number(worst.value.value, NUMBERS), text=f"{NUMBERS(worst.value.value)} ({worst.domain})")


def _minus(pair: _Pair) -> DifferenceRecord:
    return pair.unseen.difference or _NO_DIFFERENCE


def _differences(about: ComparedOnDomainsRecord, lines: list[_Difference]) -> Table:
    return table_of(
        lines,
        [
            (Column("Variant"), lambda line: words(line.variant)),
            (Column(about.column.capitalize()), lambda line: words(line.where)),
            (Column(f"Minus {about.first}", numeric=True), lambda line: number(line.difference.value, NUMBERS)),
            (INTERVAL, lambda line: interval(line.difference.low, line.difference.high, NUMBERS)),
        ],
        caption=f"Differences to {about.first} on the same images of each {about.column}",
        file_name="domain-differences",
    )


def _notes(about: ComparedOnDomainsRecord, num_seeds: int, pairs: list[_Pair]) -> list[str]:
    seeds = "" if num_seeds == 1 else " and other seeds"
    notes = [
        f"Differences are on the same images, splits and seeds. Their intervals count other images of these domains{seeds}, not "
        "other domains."
    ]
    worst = [pair.unseen.worst for pair in pairs if pair.unseen.worst is not None]
    if worst:
        number_of = len(pairs[0].unseen.domains)
        notes.append(
            f"Worst: the lowest of {number_of} means over seeds. Its interval, and that of its difference, holds whichever "
            f"domain is truly the lowest: each domain has one of {100 - 5 / number_of:.3g}\N{NO-BREAK SPACE}% for it."
        )
    if any(pair.unseen.gap is not None for pair in pairs):
        notes.append("Gap: images of domains that training saw, none of which trained or picked the model, minus unseen domains.")
    return notes
