"""The static prior: what results on other targets say, before anything looks at these images."""

from __future__ import annotations

from crossgraft.rank.known_record import PriorRecord
from crossgraft.rank.lookup import score_title
from crossgraft.rank.record import RankingRecord
from crossgraft.report.blocks import Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Column, Table, number, table_of, whole, words
from crossgraft.words.formatting import NumberFormat, joined

_TWO = NumberFormat(decimals=2)


def prior_section(source: Source[RankingRecord]) -> Section | None:
    """Known results as a control; None when nothing is known."""
    record = source.record
    if record.prior is None:
        return None
    return Section(
        name="prior",
        title="What is known from other targets",
        part="evidence",
        blocks=[Paragraph(record.prior.summary), _table(record)],
    )


def _table(record: RankingRecord) -> Table:
    places = {row.model: row.rank for row in record.ranking(record.primary_score).rows}
    return table_of(
        record.prior.rows if record.prior else [],
        [
            (Column("Model"), lambda row: words(row.model)),
            (Column("Known targets", numeric=True), lambda row: whole(row.num_targets)),
            (Column("Place by the static prior", numeric=True), lambda row: whole(row.prior_rank)),
            (Column("Mean relative rank", numeric=True), lambda row: number(row.mean_rank, _TWO)),
            (
                Column(f"Place by {score_title(record, record.primary_score)}", numeric=True),
                lambda row: whole(places[row.model]),
            ),
        ],
        caption="Control: results of the same models on other targets",
        file_name="prior",
        notes=_notes(record),
    )


def _notes(record: RankingRecord) -> list[str]:
    prior = record.prior
    if prior is None:
        return []
    notes = [
        f"Other targets: {', '.join(prior.targets)}. Source: {'; '.join(prior.origins)}. Relative rank: 0 = best, 1 = last.",
    ]
    return [*notes, _who_spoke(prior)] if any(row.origins for row in prior.rows) else notes


def _who_spoke(prior: PriorRecord) -> str:
    """Every table, or command, with the models that it speaks of."""
    of_origin = {origin: [row.model for row in prior.rows if origin in row.origins] for origin in prior.origins}
    said = [f"{origin}: {joined(models)}" for origin, models in of_origin.items() if models]
    return f"Who spoke for which model: {'; '.join(said)}."
