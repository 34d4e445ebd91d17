"""Means over targets, with intervals that know which targets are related."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.published.record import MeanRecord
from crossgraft.statistics import mean_interval

PerTarget = Float64[np.ndarray, " num_targets"]
MIN_GROUPS = 3


def mean_over_targets(
    values: PerTarget, groups: Sequence[str], *, limits: tuple[float, float] = (-np.inf, np.inf), least: int = MIN_GROUPS
) -> MeanRecord:
    """Mean over the targets where the value is defined, with the interval of ``mean_interval`` over groups of targets.

    Args:
        values: One per target; NaN = undefined.
        groups: Group of each target.
        limits: Between which the quantity lies.
        least: Fewest groups for an interval; regrets, many of which are 0, need ``statistics.LEAST_REGRETS``.
    """
    defined = np.isfinite(values)
    if not defined.any():
        return MeanRecord(value=None, num_targets=0)
    whole = mean_interval(values[defined], np.asarray(groups)[defined], limits=limits, least=least)
    return MeanRecord(
        value=whole.mean, low=whole.low, high=whole.high, num_targets=int(defined.sum()), no_interval_reason=whole.reason or None
    )
