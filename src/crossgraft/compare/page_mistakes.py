"""Whether models fail on the same images: each pair beside what independent mistakes would give."""

from __future__ import annotations

from crossgraft.compare.record import ModelComparisonRecord, SharedMistakes
from crossgraft.compare.words import NUMBERS, pair_in_words
from crossgraft.report.blocks import Block, Figure, Section
from crossgraft.report.plots.intervals import IntervalRow, intervals_figure
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Column, Table, interval, number, words

_NOTES = (
    "P: share of images that both get right or both get wrong, with a 95 % interval. Independent: a₁a₂ + (1 − a₁)(1 − a₂), with "
    "the central 95 % over all permutations of the mistakes of one model.",
    "κ = (P − independent) / (1 − independent): 0 for independent mistakes, 1 for the same ones. Agreement: share of images "
    "with the same prediction.",
)
_PROBE = (
    "*: a model without a head for these classes; its predictions are those of a linear probe on its training images."
)


def shared_mistakes_section(source: Source[ModelComparisonRecord]) -> Section | None:
    """A figure and a table; None where no pair has predictions."""
    found = [(pair, pair.mistakes) for pair in source.record.pairs if pair.mistakes is not None]
    if not found:
        return None
    rows: list[IntervalRow] = []
    for pair, mistakes in found:
        rows.append(IntervalRow(pair_in_words(pair), Interval(mistakes.value, mistakes.low, mistakes.high)))
        beside = Interval(mistakes.independent, mistakes.independent_low, mistakes.independent_high)
        rows.append(IntervalRow("if mistakes were independent", beside, is_overall=True))
    drawing = intervals_figure(rows, x_label="Both right or both wrong", identifier=f"{source.prefix}mistakes")
    table = Table(
        caption="Shared mistakes",
        columns=[
            Column("Pair"),
            Column("Accuracies"),
            Column("P", numeric=True),
            INTERVAL,
            Column("Independent", numeric=True),
            Column("Its 95 %", numeric=True, csv_titles=("independent_low", "independent_high")),
            Column("κ", numeric=True),
            Column("p", numeric=True),
            Column("Agreement", numeric=True, page_only=True),
        ],
        rows=[
            [
                words(pair_in_words(pair) + ("*" if mistakes.by_probe else "")),
                words(_accuracies(mistakes)),
                number(mistakes.value, NUMBERS),
                interval(mistakes.low, mistakes.high, NUMBERS),
                number(mistakes.independent, NUMBERS),
                interval(mistakes.independent_low, mistakes.independent_high, NUMBERS),
                number(mistakes.kappa, NUMBERS),
                number(mistakes.p_value, NUMBERS),
                number(mistakes.agreement, NUMBERS),
            ]
            for pair, mistakes in found
        ],
        file_name="mistakes",
        notes=[
            *_NOTES,
            *dict.fromkeys(mistakes.no_interval_reason for _, mistakes in found if mistakes.no_interval_reason),
            *([_PROBE] if any(mistakes.by_probe for _, mistakes in found) else []),
        ],
    )
    blocks: list[Block] = [
        Figure([drawing], caption="Shared mistakes of each pair, and what independent ones would give."),
        table,
    ]
    return Section(name="mistakes", title="Shared mistakes", part="evidence", blocks=blocks)


def _accuracies(mistakes: SharedMistakes) -> str:
    return f"{NUMBERS(mistakes.accuracy)}, {NUMBERS(mistakes.other_accuracy)}"
