"""Means over images of a loss ≥ 0, most of which are small and few large."""

from __future__ import annotations

import math

import numpy as np

from crossgraft.metrics._columns import BinaryMatrix
from crossgraft.metrics._intervals import MetricValue, PerImage, Units, no_interval
from crossgraft.statistics import skewed_reach

LEAST_UNITS_OF_LOSS = 15
"""Fewer values do not show how far to one side they lean."""
LEAST_UNITS_OF_CLASS = 3
"""A class of fewer has losses that hardly show, and they may be the largest."""


def mean_loss(values: PerImage, marks: BinaryMatrix, units: Units, *, largest: float = math.inf) -> MetricValue:
    """Mean of a number ≥ 0 per image with the interval of ``skewed_reach`` over units, cut off at 0 and ``largest``.

    ``marks`` has a column for each class or label, of which every one must have images.
    """
    value = float(values.mean())
    fewest = min(units.count(marks[:, column]) for column in range(marks.shape[1]))
    if units.number < LEAST_UNITS_OF_LOSS:
        what = "images" if units.groups is None else "groups"
        why = f"{units.number} {what} do not show how far a loss leans to one side; at least {LEAST_UNITS_OF_LOSS} are needed"
        return no_interval(value, units, why)
    if fewest < LEAST_UNITS_OF_CLASS:
        what = "images" if units.groups is None else "groups"
        why = f"a class has {fewest} {what}, where {LEAST_UNITS_OF_CLASS} are needed: its losses may be the largest"
        return no_interval(value, units, why)
    if float(np.abs(values - value).max()) <= 1e-12 * max(value, 1.0):
        return no_interval(value, units, "the loss of all images is the same, which tells nothing about others")
    below, above = skewed_reach(
        units.totals(values - value), units.num_images, confidence=units.confidence, room=(value, largest - value)
    )
    return MetricValue(value, value - below, value + above, units.num_images, units.num_groups)
