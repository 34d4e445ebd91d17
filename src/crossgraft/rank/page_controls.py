"""Controls: what the scores say about networks that learnt nothing and labels that mean nothing."""

from __future__ import annotations

from crossgraft.rank.lookup import cells_by_model, joined, score_format, score_title
from crossgraft.rank.record import RankingByScore, RankingRecord, ScoreCell
from crossgraft.report.blocks import Block, Paragraph, Section
from crossgraft.report.source import Source
from crossgraft.report.tables import Cell, Column, Table, number, whole, words


def controls_section(source: Source[RankingRecord]) -> Section:
    """The best control of each kind beside the best and the worst candidate, for every score."""
    record = source.record
    columns = [
        Column("Score"),
        Column("Best model", numeric=True),
        Column("Best random weights", numeric=True),
        Column("Best shuffled labels", numeric=True),
        Column("Shuffled values", numeric=True),
        Column("Not above their shuffled labels"),
    ]
    table = Table(
        caption="Best model and best controls, by each score",
        columns=columns,
        rows=[_row(record, ranking) for ranking in record.rankings],
        file_name="controls",
    )
    blocks: list[Block] = [
        Paragraph(
            "A score earns trust when networks with random weights and labels shuffled at random score clearly below "
            "the models. Where they do not, the score sees something else than the classes."
        ),
        table,
    ]
    return Section(name="controls", title="Controls", part="evidence", blocks=blocks)


def _row(record: RankingRecord, ranking: RankingByScore) -> list[Cell]:
    cells = cells_by_model(record, ranking.score)
    roles = {row.model: row.role for row in ranking.rows}
    candidates = [cell for cell in cells.values() if roles.get(cell.model) == "candidate"]
    random = [cell for cell in cells.values() if roles.get(cell.model) == "random weights"]
    failed = [cell.model for cell in candidates if cell.above_shuffled is False]
    as_text = score_format(record, ranking.score)
    return [
        words(score_title(record, ranking.score)),
        number(_largest(candidates), as_text),
        number(_largest(random), as_text),
        number(ranking.best_shuffled, as_text),
        whole(ranking.num_shuffled),
        words(joined(failed) or "none"),
    ]


def _largest(cells: list[ScoreCell]) -> float | None:
    return max((cell.value for cell in cells if cell.value is not None), default=None)
