"""How good probabilities are, right and sharp at once: Brier score and negative log-likelihood."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from crossgraft.errors import NotApplicable
from crossgraft.metrics._intervals import CONFIDENCE, MetricValue, PerImage, Units, no_interval
from crossgraft.metrics.rows import BinaryMatrix, Classes, Marks, as_columns
from crossgraft.statistics import skewed_reach
from crossgraft.tasks import Probabilities, task_of
from crossgraft.types import Groups

LEAST_UNITS_OF_LOSS = 15
"""Fewer values do not show how far to one side they lean."""
LEAST_UNITS_OF_CLASS = 3
"""A class of fewer has losses that hardly show, and they may be the largest."""

SURE = 0.5
"""Losses where what was true is less probable carry a mean; without any, the others tell nothing of them."""


def mean_loss(
    values: PerImage, marks: BinaryMatrix, chances: Float[np.ndarray, "n _"], units: Units, *, largest: float = math.inf
) -> MetricValue:
    """Mean of a number ≥ 0 per image with the interval of ``skewed_reach`` over units, cut off at 0 and ``largest``.

    ``marks`` has a column for each class or label, of which every one must have images; ``chances`` are of what was true.
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
    if (chances >= SURE).all():
        why = f"what was true had at least the probability {SURE} for each image, so that losses of mistakes were not seen"
        return no_interval(value, units, why)
    below, above = skewed_reach(
        units.totals(values - value), units.num_images, confidence=units.confidence, room=(value, largest - value)
    )
    return MetricValue(value, value - below, value + above, units.num_images, units.num_groups)


def brier_score(
    probabilities: Probabilities, targets: Classes | Marks, groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> MetricValue:
    """Mean squared distance of probabilities from what was true; smaller is better.

    Several classes: Σ_c (p_ic − y_ic)², from 0 to 2 as Brier wrote it. Two classes: (p_i1 − y_i)², half of that. Labels: the
    mean over labels of (p_il − y_il)². The interval over images or groups reaches as far as Student's or Hall's, who takes into
    account that a few large losses carry the mean (``crossgraft.statistics.skewed_reach``).

    Args:
        probabilities: (n, C) in [0, 1].
        targets: (n,) class of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        confidence: Confidence of the interval.

    Returns:
        Without an interval, and with the reason, where there are fewer than 15 images (or patients), or fewer than three of
        a class or label, where what was true had at least the probability 0.5 for each image, or all losses are equal.

    Raises:
        DataError: There is no image.
        UsageError: The confidence is not between 0 and 1.

    Reference:
        Brier, Monthly Weather Review 78 (1950) 1.
    """
    marks = as_columns(targets, probabilities.shape[1])
    squares = np.square(probabilities - marks)
    task = task_of(targets, probabilities.shape[1])
    losses, chances = task.squared_error(squares), task.chances(probabilities, marks)
    return mean_loss(losses, marks, chances, Units(groups, len(losses), confidence), largest=task.largest_squared_error)


def negative_log_likelihood(
    probabilities: Probabilities, targets: Classes | Marks, groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> MetricValue:
    """Mean of −ln of the probability of what was true, in nats; smaller is better. Labels: the mean over labels.

    The interval is as that of ``brier_score``.

    Args:
        probabilities: (n, C) in [0, 1]; make them in double precision, or they round to 0.
        targets: (n,) class of each image, or (n, C) with 0/1 for every label.
        groups: Patient of each image; None takes the images as independent.
        confidence: Confidence of the interval.

    Returns:
        Without an interval, and with the reason, where there are fewer than 15 images (or patients), or fewer than three of
        a class or label, where what was true had at least the probability 0.5 for each image, or all losses are equal.

    Raises:
        DataError: There is no image.
        UsageError: The confidence is not between 0 and 1.
        NotApplicable: What was true had probability 0 for some image, so that the mean is infinite.
    """
    marks = as_columns(targets, probabilities.shape[1])
    chances = task_of(targets).chances(probabilities, marks)
    impossible = int((chances <= 0).any(axis=1).sum())
    if impossible:
        raise NotApplicable(
            f"The negative log-likelihood is infinite: {impossible} of {len(chances)} images had probability 0 of what was true."
        )
    return mean_loss(-np.log(chances).mean(axis=1), marks, chances, Units(groups, len(chances), confidence))
