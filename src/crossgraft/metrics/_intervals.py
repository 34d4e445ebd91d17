"""Intervals of metrics from the influence of each image, added up over the images of one patient.

The influence of an image is how fast the metric changes with its weight, divided by n. Summed over the images of a group
and squared, influences give the variance of the metric over groups: the infinitesimal jackknife. It costs no more than
the metric, where leaving out 50 000 images one at a time would.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics.accuracy import accuracy, wilson_interval
from crossgraft.types import Groups

PerImage = Float[np.ndarray, " num_samples"]
Rows = Bool[np.ndarray, " num_samples"]


class MetricValue(NamedTuple):
    """A metric with its 95 % interval.

    Attributes:
        value: Value on these images.
        low: Lower end of the interval; None when there is none, and ``note`` says why.
        high: Upper end of the interval, or None.
        num_images: Images counted.
        num_groups: Patients (writers, lesions …) they belong to; None when images were taken as independent.
        left_out: Classes or labels that a mean leaves out, because it has no meaning for them on these images.
        note: Note about the value, in one sentence.
    """

    value: float
    low: float | None
    high: float | None
    num_images: int
    num_groups: int | None
    left_out: tuple[str, ...] = ()
    note: str | None = None


class Units:
    """What is drawn independently: groups, or single images.

    Args:
        groups: Patient of each image, or None.
        num_images: Number of images.

    Raises:
        DataError: There is no image, or the number of groups differs from that of images.
    """

    def __init__(self, groups: Groups | None, num_images: int) -> None:
        if num_images == 0:
            raise DataError("A metric needs at least one image; there is none.")
        if groups is not None and len(groups) != num_images:
            raise DataError(f"groups has {len(groups)} rows and there are {num_images} images; they must match.")
        self.groups = groups
        self.num_images = num_images
        self.index: Int[np.ndarray, " num_samples"] | None = None
        self.num_groups: int | None = None
        if groups is not None:
            names, self.index = np.unique(groups, return_inverse=True)
            self.num_groups = len(names)

    @property
    def number(self) -> int:
        """Groups, or images without groups."""
        return self.num_images if self.num_groups is None else self.num_groups

    def count(self, rows: Rows) -> int:
        """How many units have an image among ``rows``."""
        return int(rows.sum()) if self.index is None else len(np.unique(self.index[rows]))

    def sum_of_squares(self, influence: PerImage) -> float:
        """Σ over units of the squared sum of influences: the variance of the metric, before corrections."""
        totals = influence if self.index is None else np.bincount(self.index, weights=influence)
        return float(totals @ totals)


class Part(NamedTuple):
    """One statistic in [0, 1], alone or as one term of a mean over classes.

    Attributes:
        value: Value on all images.
        low: Lower end of its interval.
        high: Upper end of its interval.
        influence: Influence of each image.
        name: Class or label.
        is_known: False when all its images are of one group: nothing is known, and the interval is [0, 1].
    """

    value: float
    low: float
    high: float
    influence: PerImage
    name: str
    is_known: bool = True


def share_part(correct: PerImage | Rows, rows: Rows, units: Units, name: str) -> Part:
    """The share of ``rows`` that are right, with the interval of ``accuracy``."""
    groups = None if units.groups is None else units.groups[rows]
    value = float(correct[rows].mean())
    influence = np.where(rows, (correct - value) / rows.sum(), 0.0)
    try:
        _, low, high, _, _ = accuracy(correct[rows].astype(np.float64), groups)
    except NotApplicable:
        return Part(value, 0.0, 1.0, influence, name, is_known=False)
    return Part(value, low, high, influence, name)


def share_of_images(correct: PerImage | Rows, groups: Groups | None) -> MetricValue:
    """Mean of right or wrong (or of shares in [0, 1]) with the interval of ``accuracy``, or the reason why it has none."""
    units = Units(groups, len(correct))
    return mean_of_parts([share_part(correct, np.ones(len(correct), dtype=bool), units, "")], units)


class Spread(NamedTuple):
    """What is known of the spread of a statistic of positive and negative images.

    Attributes:
        variance: Variance of the statistic; None where the images show none.
        quantile: Quantile of the 95 % interval.
        num_positive: Units with a positive image.
        num_negative: Units with a negative image.
    """

    variance: float | None
    quantile: float
    num_positive: int
    num_negative: int


def effective_sample_interval(value: float, spread: Spread) -> tuple[float, float]:
    """Wilson's interval of a share of m = value (1 − value) / variance images, of the fewer units without a variance."""
    if spread.variance is None:
        return wilson_interval(value, float(max(1, min(spread.num_positive, spread.num_negative))), spread.quantile)
    return wilson_interval(value, value * (1 - value) / spread.variance, spread.quantile)


def smooth_part(
    value: float,
    influence: PerImage,
    is_positive: Rows,
    units: Units,
    name: str,
    *,
    interval: Callable[[float, Spread], tuple[float, float]] = effective_sample_interval,
) -> Part:
    """A statistic in [0, 1] of positive and negative images.

    Positive and negative images are corrected as the two samples that they are: variance · u/(u − 1) with u their units;
    the quantile is Student's t with Welch's degrees of freedom, at most one less than there are units.
    """
    sides = [is_positive, ~is_positive]
    counts = np.array([units.count(side) for side in sides])
    used = counts > 0
    if counts[used].min() < 2:
        if units.groups is not None:
            return Part(value, 0.0, 1.0, influence, name, is_known=False)
        low, high = interval(value, Spread(None, _quantile(math.inf), *counts.tolist()))
        return Part(value, low, high, influence, name)
    factors = [math.sqrt(count / (count - 1)) if count else 1.0 for count in counts.tolist()]
    corrected = influence * np.where(is_positive, *factors)
    variance = units.sum_of_squares(corrected)
    if variance <= _ROUNDING or not 0 < value < 1:
        freedom = math.inf if units.groups is None else int(counts[used].min()) - 1
        spread = Spread(None, _quantile(freedom), *counts.tolist())
    else:
        by_side = np.array([units.sum_of_squares(np.where(side, corrected, 0.0)) for side in sides])[used]
        freedom = min(by_side.sum() ** 2 / float((by_side**2 / (counts[used] - 1)).sum()), units.number - 1)
        spread = Spread(variance, _quantile(freedom), *counts.tolist())
    return Part(value, *interval(value, spread), corrected, name)


def mean_of_parts(parts: Iterable[Part], units: Units, left_out: Sequence[str] = ()) -> MetricValue:
    """Mean of statistics with their own intervals, which need not be independent (MOVER).

    low = mean − √(Σ_j Σ_k ρ_jk d_j d_k) / K with d_k = value_k − low_k and ρ the correlation of the influences; high alike.
    The interval stays in [0, 1], and a class with few images widens it even when all of them are right. The parts are
    used up one at a time, so that memory does not grow with their number.

    Reference:
        Zou, Huang and Zhang, Comput. Stat. Data Anal. 53 (2009) 1080.
    """
    below, above = np.zeros(units.num_images), np.zeros(units.num_images)
    alone = np.zeros(2)
    values: list[float] = []
    unknown: list[str] = []
    for part in parts:
        distances = np.array([part.value - part.low, part.high - part.value])
        deviation = math.sqrt(units.sum_of_squares(part.influence))
        if deviation**2 <= _ROUNDING or not part.is_known:
            alone += distances**2
        else:
            below += distances[0] / deviation * part.influence
            above += distances[1] / deviation * part.influence
        values.append(part.value)
        unknown += [] if part.is_known else [part.name]
    value = float(np.mean(values))
    known = len(unknown) < len(values)
    low = max(0.0, value - math.sqrt(units.sum_of_squares(below) + alone[0]) / len(values)) if known else None
    high = min(1.0, value + math.sqrt(units.sum_of_squares(above) + alone[1]) / len(values)) if known else None
    note = _note(left_out, unknown, known=known)
    return MetricValue(value, low, high, units.num_images, units.num_groups, tuple(left_out), note)


def mean_over_images(values: PerImage, units: Units, *, largest: float = math.inf) -> MetricValue:
    """Mean of a number ≥ 0 per image: mean ± t · SE over units, cut off at 0 and ``largest``."""
    value = float(values.mean())
    if units.number < 2:
        what = "one image" if units.groups is None else "images of one group"
        note = f"There is only {what}, so that nothing is known about others."
        return MetricValue(value, None, None, units.num_images, units.num_groups, note=note)
    variance = units.sum_of_squares((values - value) / units.num_images) * units.number / (units.number - 1)
    half_width = _quantile(units.number - 1) * math.sqrt(variance)
    low, high = max(0.0, value - half_width), min(largest, value + half_width)
    return MetricValue(value, low, high, units.num_images, units.num_groups)


_ROUNDING = 1e-24
"""A variance below it is rounding: the smallest true one of a statistic of 10⁹ images is larger."""


def _quantile(freedom: float | int) -> float:
    return float(stats.norm.ppf(0.975) if math.isinf(freedom) else stats.t.ppf(0.975, freedom))


def _note(left_out: Sequence[str], unknown: Sequence[str], *, known: bool) -> str | None:
    sentences: list[str] = []
    if left_out:
        sentences.append(f"Without {', '.join(left_out)}: images with and without it are needed.")
    if not known:
        sentences.append("No interval: images that count belong to one group, so nothing is known about other groups.")
    elif unknown:
        sentences.append(f"One group holds all images of {', '.join(unknown)}, whose part may be anything from 0 to 1.")
    return " ".join(sentences) or None
