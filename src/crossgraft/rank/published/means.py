"""Means over targets, with intervals that know which targets are related."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

from crossgraft.records import MeanRecord
from crossgraft.statistics import jackknife_interval

PerTarget = Float64[np.ndarray, " num_targets"]
MIN_GROUPS = 3


def mean_over_targets(
    values: PerTarget, groups: Sequence[str], *, limits: tuple[float, float] = (-np.inf, np.inf)
) -> MeanRecord:
    """Mean over the targets where the value is defined; the interval leaves out one group of targets at a time.

    There is none with fewer than three groups, and none where all values are the same.

    Args:
        values: One per target; NaN = undefined.
        groups: Group of each target.
        limits: Between which the quantity lies; the interval is cut there.
    """
    defined = np.isfinite(values)
    names = np.asarray(groups)[defined]
    kept = values[defined]
    if not len(kept):
        return MeanRecord(value=None, num_targets=0)
    mean = float(kept.mean())
    distinct = list(dict.fromkeys(names.tolist()))
    if (
        len(distinct) < MIN_GROUPS or np.ptp(kept) == 0
    ):  # an interval of width 0 would promise what a few targets cannot
        return MeanRecord(value=mean, num_targets=len(kept))
    estimate = jackknife_interval(mean, [float(kept[names != name].mean()) for name in distinct])
    low, high = max(estimate.low, limits[0]), min(estimate.high, limits[1])
    return MeanRecord(value=mean, low=low, high=high, num_targets=len(kept))
