"""A ranking whose record contradicts itself."""

from __future__ import annotations

from pathlib import Path

from crossgraft.errors import DataError
from crossgraft.rank.record import RankingRecord


def refuse_incomplete(record: RankingRecord, path: Path) -> None:
    """Every name that a ranking mentions must have its model, its score and its cell.

    Args:
        record: The ranking.
        path: Its file, for the message.

    Raises:
        DataError: One has not.
    """
    models = {model.name for model in record.models}
    scores = {score.name for score in record.scores}
    cells = {(cell.model, cell.score) for cell in record.cells}
    ranked = {(row.model, ranking.score) for ranking in record.rankings for row in ranking.rows}
    if record.primary_score not in {ranking.score for ranking in record.rankings}:
        raise DataError(f"{path} has no ranking by its primary score {record.primary_score}. Run the command again.")
    for model, score in sorted(ranked | cells):
        if model not in models or score not in scores or (model, score) not in cells:
            raise DataError(
                f"{path} mentions {score} of {model}, but lacks the model, the score or its value. Run the command "
                "again."
            )
