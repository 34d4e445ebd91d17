"""A curve of interpolations in several seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from crossgraft.interpolate.record import InterpolationPoint, InterpolationRecord


def curve_of(records: Sequence[InterpolationRecord], kind: str, metric: str) -> list[tuple[float, float]]:
    """The mean over seeds of the similarity called ``kind`` and of the metric at each α."""
    alphas = [point.alpha for point in records[0].points] if records else []
    return [
        (
            _mean([_at(record, alpha).similarity.get(kind, math.nan) for record in records]),
            _mean([_value(record, alpha, metric) for record in records]),
        )
        for alpha in alphas
    ]


def joined_in(records: Sequence[InterpolationRecord], kind: str) -> list[bool]:
    """Whether each point may be joined to the next, in every seed."""
    steps = range(len(records[0].points) - 1) if records else ()
    return [all(record.is_joined(place, kind) for record in records) for place in steps]


def _at(record: InterpolationRecord, alpha: float) -> InterpolationPoint:
    return next(point for point in record.points if point.alpha == alpha)


def _value(record: InterpolationRecord, alpha: float, metric: str) -> float:
    found = _at(record, alpha).metric(metric)
    return math.nan if found is None or found.value is None else found.value


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
