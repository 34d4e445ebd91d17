"""How far an artefact pulls answers towards a class, and whether that is more than shams and the starting network explain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int
from scipy import stats

from crossgraft.errors import DataError
from crossgraft.metrics import MetricValue
from crossgraft.types import Groups

Shifts = Float64[np.ndarray, " num_images"]
"""Change of the logit of each image that gets an edit, in standard deviations of the logit within a class."""
Draws = Float64[np.ndarray, "num_draws num_images"]
Positive = Bool[np.ndarray, " num_images"]

LEAST_PULL = 0.05
"""A smaller pull is no reliance, however sure it is."""
_CONFIDENCE = 0.975


class Pull(NamedTuple):
    """What an artefact does to the answers of a model, in standard deviations of the logit within a class.

    Attributes:
        of_model: Mean shift, both classes counting the same, with its interval over images; above 0 towards the class in
            question.
        of_positives: Mean shift of positives.
        of_negatives: Mean shift of negatives.
        over_start: Pull minus that of heads on the starting network, with an interval over images and over one more head; None:
            it was not asked.
        over_shams: Pull minus the mean pull of shams. None: it was not asked, or there is no sham.
    """

    of_model: MetricValue
    of_positives: float
    of_negatives: float
    over_start: MetricValue | None = None
    over_shams: MetricValue | None = None

    @property
    def direction(self) -> int:
        """1 towards the class in question, −1 away from it."""
        return 1 if self.of_model.value >= 0 else -1

    @property
    def may_rely(self) -> bool:
        """Whether it is large and sure enough that shams and the starting network are worth asking."""
        return abs(self.of_model.value) >= LEAST_PULL and _beyond(self.of_model, self.direction)

    @property
    def is_beyond_start(self) -> bool:
        """Whether it is more than one more head on the starting network would have."""
        return self.may_rely and self.over_start is not None and _beyond(self.over_start, self.direction)

    @property
    def relies(self) -> bool:
        """Whether the model learned the artefact as a cue.

        The pull exceeds that of heads on the starting network, and that of shams, each with all of its interval. Without the
        starting network it cannot be told.
        """
        return self.is_beyond_start and self.over_shams is not None and _beyond(self.over_shams, self.direction)


def shifts(clean: Shifts, edited: Float64[np.ndarray, "*draws num_images"], is_positive: Positive) -> np.ndarray:
    """Change of each logit, over the standard deviation of clean logits within a class, pooled over both classes.

    Args:
        clean: (n,) logits of the images as they are.
        edited: (n,) or (draws, n) logits of the same images with an edit.
        is_positive: (n,) whether an image is of the class in question.

    Raises:
        DataError: A class has fewer than two images, or all logits within both classes are equal.
    """
    variances = [float(clean[of_class].var(ddof=1)) for of_class in _classes(is_positive)]
    spread = math.sqrt(sum(variances) / 2)
    if not spread > 0:
        raise DataError("All images of a class get the same answer, so that there is nothing to measure a shift by.")
    return (edited - clean) / spread


def pull_of(shift: Shifts, is_positive: Positive, groups: Groups | None = None) -> Pull:
    """The pull of an artefact on one model, from the shift of each image.

    Args:
        shift: (n,) from ``shifts``.
        is_positive: (n,).
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: A class has fewer than two images.
    """
    positives, negatives = _classes(is_positive)
    found = _mean(shift, None, is_positive, groups)
    return Pull(found, float(shift[positives].mean()), float(shift[negatives].mean()))


def beside_start(
    found: Pull, shift: Shifts, of_heads: Draws, is_positive: Positive, groups: Groups | None = None
) -> Pull:
    """The pull beside that of heads on the starting network.

    Args:
        found: From ``pull_of``.
        shift: (n,) of the model.
        of_heads: (heads, n) shifts of the heads, each by its own standard deviation.
        is_positive: (n,).
        groups: Patient of each image.
    """
    return found._replace(over_start=excess(shift, of_heads, is_positive, groups, of_one_more=True))


def beside_shams(
    found: Pull, shift: Shifts, of_shams: Draws, is_positive: Positive, groups: Groups | None = None
) -> Pull:
    """The pull beside that of shams.

    Args:
        found: From ``pull_of`` or ``beside_start``.
        shift: (n,) of the model.
        of_shams: (draws, n) shifts of the model by shams.
        is_positive: (n,).
        groups: Patient of each image.
    """
    return found._replace(over_shams=excess(shift, of_shams, is_positive, groups, of_one_more=False))


def excess(
    shift: Shifts, others: Draws, is_positive: Positive, groups: Groups | None = None, *, of_one_more: bool
) -> MetricValue:
    """Pull minus the mean pull of several draws of something else, of the same images, with an interval of 95 %.

    The variance is that of the paired differences over images, or patients, plus that of the draws: of their mean, or of that
    and one more draw. Degrees of freedom by Welch and Satterthwaite.

    Args:
        shift: (n,) of the model.
        others: (m, n) of at least two draws.
        is_positive: (n,).
        groups: Patient of each image; None takes the images as independent.
        of_one_more: Whether the question is if the model is unlike one more draw (a prediction interval), not unlike their mean.

    Raises:
        DataError: A class has fewer than two images, or there are fewer than two draws.
    """
    if len(others) < 2:
        raise DataError(f"A pull is compared with at least two draws, got {len(others)}.")
    of_draws = (others * _weights(is_positive)).sum(axis=1)
    variance = float(of_draws.var(ddof=1)) * ((1 if of_one_more else 0) + 1 / len(others))
    return _mean(shift - others.mean(axis=0), (variance, len(others) - 1), is_positive, groups)


def _mean(
    values: Shifts, of_draws: tuple[float, int] | None, is_positive: Positive, groups: Groups | None
) -> MetricValue:
    """Mean of both classes' means, with the variance over units and that of draws (with its degrees of freedom) added up."""
    weights, centred = _weights(is_positive), values.astype(np.float64)
    value = float((weights * values).sum())
    for of_class in _classes(is_positive):
        centred = np.where(of_class, centred - values[of_class].mean(), centred)
    unit = np.arange(len(values)) if groups is None else np.unique(groups, return_inverse=True)[1]
    influence = np.bincount(unit, weights * centred)
    number = len(influence)
    fewest = min(len(np.unique(unit[of_class])) for of_class in _classes(is_positive))
    num_groups = None if groups is None else number
    if fewest < 2:
        note = "No interval: images of a class belong to one group, so nothing is known about other groups."
        return MetricValue(value, None, None, len(values), num_groups, note=note)
    parts = [(float((influence**2).sum()) * number / (number - 1), fewest - 1), *([of_draws] if of_draws else [])]
    variance = sum(part for part, _ in parts)
    inverse_freedom = sum(part**2 / freedom for part, freedom in parts)
    quantile = stats.t.ppf(_CONFIDENCE, variance**2 / inverse_freedom) if inverse_freedom else 0.0
    half = float(quantile) * math.sqrt(variance)
    return MetricValue(value, value - half, value + half, len(values), num_groups)


def _classes(is_positive: Positive) -> tuple[Positive, Positive]:
    positives = np.asarray(is_positive, dtype=bool)
    fewest = min(int(positives.sum()), int((~positives).sum()))
    if fewest < 2:
        raise DataError(f"A pull needs at least two images of each class; one has {fewest}.")
    return positives, ~positives


def _weights(is_positive: Int[np.ndarray, " n"] | Positive) -> Float64[np.ndarray, " n"]:
    """Both classes count the same, whatever their sizes."""
    positives, negatives = _classes(is_positive)
    return np.where(positives, 0.5 / positives.sum(), 0.5 / negatives.sum())


def _beyond(found: MetricValue, direction: int) -> bool:
    """Whether the whole interval lies on this side of 0; without an interval, no."""
    end = found.low if direction > 0 else found.high
    return end is not None and direction * end > 0
