"""Titles and values of scores, as the pages of a ranking write them."""

from __future__ import annotations

from crossgraft.rank.record import STATIC_PRIOR, RankingRecord, ScoreCell
from crossgraft.words.formatting import NumberFormat


def score_title(record: RankingRecord, score: str) -> str:
    """The title of the score called ``score``, or of the static prior."""
    if score == STATIC_PRIOR:
        return "Static prior (control)"
    return next(entry.title for entry in record.scores if entry.name == score)


def cells_by_model(record: RankingRecord, score: str) -> dict[str, ScoreCell]:
    """The cells of one score."""
    return {cell.model: cell for cell in record.cells if cell.score == score}


def score_format(record: RankingRecord, score: str) -> NumberFormat:
    """The decimals of one score, the same everywhere on the page."""
    cells = cells_by_model(record, score).values()
    widths = [cell.high - cell.low for cell in cells if cell.high is not None and cell.low is not None]
    return NumberFormat.for_column([cell.value for cell in cells], interval_widths=widths)
