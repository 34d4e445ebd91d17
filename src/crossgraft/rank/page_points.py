"""The dots of a scatter figure: the primary score of each model against something else."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.rank.lookup import cells_by_model
from crossgraft.rank.record import RankingRecord, ScoreCell
from crossgraft.report.plots.scatter import Interval, Point
from crossgraft.report.plots.style import family_marks


def against_primary(record: RankingRecord, other: Mapping[str, Interval], *, last_rank: int) -> list[Point]:
    """One dot for each model of ``other``, in the order of the ranking by the primary score.

    Args:
        record: The ranking.
        other: Model → what goes up the page.
        last_rank: Ranks up to this one are written beside their dots.
    """
    marks = family_marks(model.family for model in record.models if model.role == "candidate")
    primary = cells_by_model(record, record.primary_score)
    return [
        Point(
            x=as_interval(primary[row.model]),
            y=other[row.model],
            mark=marks[record.model(row.model).family] if row.role == "candidate" else None,
            rank=row.rank if row.rank is not None and row.rank <= last_rank else None,
        )
        for row in record.ranking(record.primary_score).rows
        if row.model in other
    ]


def as_interval(cell: ScoreCell) -> Interval:
    """Value and ends of a cell."""
    return Interval(cell.value, cell.low, cell.high)
