"""The order that one score gives, and which neighbours it can tell apart."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from crossgraft.models.record import Role
from crossgraft.rank.record import PairRecord, RankingByScore, RankRow, ScoreCell
from crossgraft.statistics import Estimate, jackknife_interval

FLOAT32_ROUNDING = 1e-6
"""Relative size of a difference that may be rounding of the features, for example between two saturated scores."""


def difference(first: ScoreCell, second: ScoreCell) -> Estimate | None:
    """The difference of two cells with its jackknife interval; None where one of them has no interval.

    Both models were evaluated without the same blocks, so what the images have in common cancels. What is drawn with a seed is
    drawn for each of them, so it adds up.
    """
    if first.value is None or second.value is None or not first.jackknife_values or not second.jackknife_values:
        return None
    replicates = np.subtract(first.jackknife_values, second.jackknife_values)
    redrawn = [cell.redrawn_values for cell in (first, second) if cell.redrawn_values]
    estimate = jackknife_interval(first.value - second.value, replicates, redrawn=redrawn)
    return estimate if estimate.standard_error > 0 else None


def separable(first: ScoreCell, second: ScoreCell) -> bool:
    """Whether the interval of the difference excludes 0. Without an interval, or within rounding, nothing is separable."""
    estimate = difference(first, second)
    if estimate is None or estimate.contains_zero:
        return False
    size = max(1.0, abs(first.value or 0.0), abs(second.value or 0.0))
    return abs(estimate.value) > FLOAT32_ROUNDING * size


def order_models(score: str, cells: Sequence[ScoreCell], roles: Mapping[str, Role]) -> RankingByScore:
    """Rank the candidates by one score, best first; ties keep the order of the zoo.

    Controls are listed after the candidates and get no rank.
    """
    ranked = sorted(
        (cell for cell in cells if roles[cell.model] == "candidate" and cell.value is not None),
        key=lambda cell: -(cell.value or 0.0),
    )
    rows = [
        RankRow(
            model=cell.model,
            role="candidate",
            rank=position + 1,
            not_separable_from=[
                other + 1
                for other, other_cell in enumerate(ranked)
                if other != position and not separable(cell, other_cell)
            ],
        )
        for position, cell in enumerate(ranked)
    ]
    in_rank = {cell.model for cell in ranked}
    rest = sorted((cell for cell in cells if cell.model not in in_rank), key=lambda cell: roles[cell.model])
    rows += [RankRow(model=cell.model, role=roles[cell.model], rank=None, not_separable_from=[]) for cell in rest]
    shuffled = [value for cell in cells if roles[cell.model] == "candidate" for value in cell.shuffled_values]
    return RankingByScore(
        score=score,
        rows=rows,
        pairs=[_pair(first, second) for first, second in pairwise(ranked)],
        best_shuffled=max(shuffled, default=None),
        num_shuffled=len(shuffled),
    )


def _pair(first: ScoreCell, second: ScoreCell) -> PairRecord:
    estimate = difference(first, second)
    return PairRecord(
        first=first.model,
        second=second.model,
        difference=(first.value or 0.0) - (second.value or 0.0),
        low=estimate.low if estimate else None,
        high=estimate.high if estimate else None,
        separable=separable(first, second),
    )
