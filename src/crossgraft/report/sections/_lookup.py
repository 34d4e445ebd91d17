"""Small look-ups in a ranking that several sections share."""

from __future__ import annotations

from collections.abc import Sequence

from crossgraft.records import RankingRecord, ScoreCell
from crossgraft.report.formatting import NumberFormat

_MOST_JOINED = 6


def score_title(record: RankingRecord, score: str) -> str:
    """The title of the score called ``score``."""
    return next(entry.title for entry in record.scores if entry.name == score)


def cells_by_model(record: RankingRecord, score: str) -> dict[str, ScoreCell]:
    """The cells of one score."""
    return {cell.model: cell for cell in record.cells if cell.score == score}


def score_format(record: RankingRecord, score: str) -> NumberFormat:
    """The decimals of one score, the same everywhere on the page."""
    cells = cells_by_model(record, score).values()
    widths = [cell.high - cell.low for cell in cells if cell.high is not None and cell.low is not None]
    return NumberFormat.for_column([cell.value for cell in cells], interval_widths=widths)


def joined(names: Sequence[str]) -> str:
    """Names in running text; of more than six, the first five and how many more."""
    if len(names) > _MOST_JOINED:
        return f"{', '.join(names[: _MOST_JOINED - 1])} and {len(names) - _MOST_JOINED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
