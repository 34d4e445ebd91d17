"""Intervals of metrics: what is drawn independently, parts with intervals of their own, and how parts are put together.

The influence of an image is how fast a metric changes with its weight, divided by n. Summed over the images of a group and
squared, influences give the variance of the metric over groups: the infinitesimal jackknife. It costs no more than the metric,
where leaving out 50 000 images one at a time would. How far an interval reaches is the matter of each kind of metric (shares,
areas, precisions, losses); parts with intervals are put together here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import special

from crossgraft.errors import DataError, UsageError
from crossgraft.types import Groups

PerImage = Float[np.ndarray, " num_samples"]
Rows = Bool[np.ndarray, " num_samples"]

CONFIDENCE = 0.95
ROUNDING = 1e-24
"""A variance below it is rounding: the smallest true one of a statistic of 10⁹ images is larger."""


class MetricValue(NamedTuple):
    """A metric with its interval, of 95 % where nothing else was asked for.

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
        confidence: Share of repetitions in which an interval shall hold the truth.

    Raises:
        DataError: There is no image, or the number of groups differs from that of images.
        UsageError: The confidence is not between 0 and 1.
    """

    def __init__(self, groups: Groups | None, num_images: int, confidence: float = CONFIDENCE) -> None:
        if num_images == 0:
            raise DataError("A metric needs at least one image; there is none.")
        if groups is not None and len(groups) != num_images:
            raise DataError(f"groups has {len(groups)} rows and there are {num_images} images; they must match.")
        if not 0 < confidence < 1:
            raise UsageError(f"confidence is a share between 0 and 1, 0.95 for example; got {confidence!r}.")
        self.groups = groups
        self.num_images = num_images
        self.confidence = confidence
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

    def totals(self, values: PerImage) -> Float[np.ndarray, " num_units"]:
        """Sum of each unit."""
        return values if self.index is None else np.bincount(self.index, weights=values)

    def sum_of_squares(self, influence: PerImage) -> float:
        """Σ over units of the squared sum of influences: the variance of the metric, before corrections."""
        totals = self.totals(influence)
        return float(totals @ totals)

    def quantile(self, freedom: float) -> float:
        """Quantile of Student's t, or of the normal distribution for ``math.inf``."""
        share = (1 + self.confidence) / 2
        return float(special.ndtri(share) if math.isinf(freedom) else special.stdtrit(freedom, share))


class Part(NamedTuple):
    """One statistic in [0, 1], alone or as one term of a mean over classes or of a difference.

    Attributes:
        value: Value on all images.
        low: Lower end of its interval.
        high: Upper end of its interval.
        influence: Influence of each image.
        name: Class or label.
        num_units: Fewest units that it rests on.
        is_known: False when too few units hold its images: nothing is known, and the interval is [0, 1].
    """

    value: float
    low: float
    high: float
    influence: PerImage
    name: str
    num_units: int
    is_known: bool = True


def unknown_part(value: float, influence: PerImage, name: str, num_units: int) -> Part:
    """A part of which these images tell nothing about others."""
    return Part(value, 0.0, 1.0, influence, name, num_units, is_known=False)


class TwoSided(NamedTuple):
    """The spread of a statistic of positive and negative images.

    Attributes:
        influence: Influence of each image, corrected as that of two samples: times √(u / (u − 1)) with u the units of its side.
        variance: Variance of the statistic.
        freedom: Welch's degrees of freedom, at most one less than there are units.
        num_units: Units with a positive image, and with a negative one.
    """

    influence: PerImage
    variance: float
    freedom: float
    num_units: tuple[int, int]


def two_sided(influence: PerImage, is_positive: Rows, units: Units) -> TwoSided | None:
    """The spread over units; None where a side has one unit, which tells nothing about others."""
    sides = (is_positive, ~is_positive)
    positive, negative = (units.count(side) for side in sides)
    if min(positive, negative) < LEAST_UNITS:
        return None
    counts = np.array([positive, negative])
    corrected = influence * np.where(is_positive, *np.sqrt(counts / (counts - 1)).tolist())
    variance = units.sum_of_squares(corrected)
    by_side = np.array([units.sum_of_squares(np.where(side, corrected, 0.0)) for side in sides])
    freedom = float(min(counts) - 1)
    if variance > ROUNDING:
        freedom = min(by_side.sum() ** 2 / float((by_side**2 / (counts - 1)).sum()), units.number - 1)
    return TwoSided(corrected, variance, max(freedom, 1.0), (positive, negative))


LEAST_UNITS = 2
"""Positive and negative images, or patients that have some, from which on there is an interval of what compares them."""


class Sum:
    """Σ c · statistic over parts with their own intervals, which need not be independent: square and add (MOVER).

    low = Σ c v − √J, J = Σ_j Σ_k ρ_jk c_j c_k d_j d_k, with d_k how far the interval of a part reaches from its value: downwards
    where c > 0, upwards where c < 0; high alike. ρ is the correlation of the influences. Parts that go together err to one and
    the same side, so J is at most the larger one of J with all d downwards and with all d upwards. As an estimate from u units
    ρ is not trusted to cancel all: where it narrows the interval, (1 − 1/u) ρ takes its place, so that statistics that agree on
    every image still have one. Parts are used up one at a time: memory does not grow with their number.

    Reference:
        Zou and Donner, Stat. Med. 27 (2008) 1693; Zou, Huang and Zhang, Comput. Stat. Data Anal. 53 (2009) 1080; for shares
        Newcombe, Stat. Med. 17 (1998) 2635. The bound by both sides and the share 1/u are this project's.
    """

    def __init__(self, units: Units) -> None:
        self.units = units
        self.value = 0.0
        self.number = 0
        self.unknown: list[str] = []
        self._joint = np.zeros((4, units.num_images))  # by sign of c: of the lower and of the upper end; all down; all up
        self._own = np.zeros(2)
        self._alone = np.zeros(2)
        self._fewest = units.number

    def add(self, part: Part, coefficient: float = 1.0) -> None:
        """Add ``coefficient`` times a part."""
        down, up = part.value - part.low, part.high - part.value
        ends = np.array([down, up] if coefficient > 0 else [up, down])
        deviation = math.sqrt(self.units.sum_of_squares(part.influence))
        if deviation**2 <= ROUNDING or not part.is_known:
            self._alone += (coefficient * ends) ** 2
        else:
            weights = coefficient / deviation * np.array([*ends, down, up])
            self._joint += weights[:, None] * part.influence
            self._own += (coefficient * ends) ** 2
            self._fewest = min(self._fewest, part.num_units)
        self.value += coefficient * part.value
        self.number += 1
        self.unknown += [] if part.is_known else [part.name]

    @property
    def reach(self) -> tuple[float, float]:
        """How far the interval reaches downwards and upwards from the value."""
        joint = np.array([self.units.sum_of_squares(each) for each in self._joint])
        bounded, share = np.minimum(joint[:2], joint[2:].max()), 1 / self._fewest
        squares = np.maximum(bounded, (1 - share) * bounded + share * self._own) + self._alone
        below, above = np.sqrt(squares).tolist()
        return below, above


def mean_of_parts(parts: Iterable[Part], units: Units, left_out: Sequence[str] = ()) -> MetricValue:
    """Mean of statistics with their own intervals; a class with few images widens it even when all of them are right."""
    total = Sum(units)
    for part in parts:
        total.add(part)
    value = total.value / total.number
    known = len(total.unknown) < total.number
    below, above = (each / total.number for each in total.reach)
    low = max(0.0, value - below) if known else None
    high = min(1.0, value + above) if known else None
    note = _note(left_out, total.unknown, units, known=known)
    return MetricValue(value, low, high, units.num_images, units.num_groups, tuple(left_out), note)


def no_interval(value: float, units: Units, why: str) -> MetricValue:
    """A value without an interval, and the reason in a sentence."""
    return MetricValue(value, None, None, units.num_images, units.num_groups, note=f"No interval: {why}.")


def _note(left_out: Sequence[str], unknown: Sequence[str], units: Units, *, known: bool) -> str | None:
    sentences: list[str] = []
    if left_out:
        sentences.append(f"Without {', '.join(left_out)}: images with and without it are needed.")
    holder = "One image is" if units.groups is None else "One group holds"
    if not known:
        what = "there is one image" if units.groups is None else "images belong to one group"
        sentences.append(f"No interval: {what} on a side that counts, which tells nothing about others.")
    elif unknown:
        sentences.append(f"{holder} all there is of {', '.join(unknown)}, whose part may be anything from 0 to 1.")
    return " ".join(sentences) or None


PerGroup = Float[np.ndarray, " num_groups"]


def share_interval(share: float, number: float, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of ``number`` images, which need not be whole.

    It holds the truth at least as often as it says for every share and number, where Wilson's falls to 83 % at n = 10 and a
    share of 0.98.

    Reference:
        Clopper and Pearson, Biometrika 26 (1934) 404; Brown, Cai and DasGupta, Stat. Sci. 16 (2001) 101.
    """
    right, wrong = share * number, (1 - share) * number
    tail = (1 - confidence) / 2
    low = float(special.betaincinv(right, wrong + 1, tail)) if right > 0 else 0.0
    high = float(special.betaincinv(right + 1, wrong, 1 - tail)) if wrong > 0 else 1.0
    return min(low, share), max(high, share)  # SciPy finds no quantile below 2e-12


def effective_number(rights: PerGroup, sizes: PerGroup, units: Units) -> float:
    """How many independent images the images of G groups are worth for the share that is right.

    n* = (n / d) (z / t)², after Korn and Graubard: d is how often larger the variance over groups (their jackknife) is than that
    of n independent images, at least 1; t is Student's quantile with G − 1 degrees of freedom and z the normal one. Few groups
    with a wrong image, or few with a right one, say little about d: with f such groups (by their sizes, (Σ k)² / Σ k²) it is
    ``drawn_towards`` D = Σ k² / n, which it is where each group is all right or all wrong.

    Args:
        rights: Sum over the images of each group.
        sizes: Images of each group.
        units: For the confidence.

    Reference:
        Korn and Graubard, Survey Methodology 24 (1998) 193; for f Kish, Survey Sampling (1965).
    """
    num_images, num_groups = float(sizes.sum()), len(sizes)
    share = float(rights.sum()) / num_images
    most = float(sizes @ sizes) / num_images
    design = 1.0
    if 0 < share < 1:
        without = (rights.sum() - rights) / (num_images - sizes)
        variance = (num_groups - 1) / num_groups * float(np.square(without - without.mean()).sum())
        design = max(1.0, variance * num_images / (share * (1 - share)))
    num_telling = min(_kish(sizes[rights < sizes]), _kish(sizes[rights > 0]))
    design = drawn_towards(design, most, num_telling)
    return num_images / design * (units.quantile(np.inf) / units.quantile(num_groups - 1)) ** 2


def drawn_towards(design: float, most: float, num_told: float) -> float:
    """d^(f/(f+2)) D^(2/(f+2)): a design effect d that f groups tell of, and the largest one, D; never below d.

    The constant 2 is this project's; it is among those that ``docs/log.md`` states.
    """
    share = 2 / (num_told + 2)
    return design ** (1 - share) * max(most, design) ** share


def _kish(sizes: PerGroup) -> float:
    return float(sizes.sum() ** 2 / (sizes @ sizes)) if len(sizes) else 0.0


def share_part(correct: PerImage | Rows, rows: Rows, units: Units, name: str) -> Part:
    """The share of ``rows`` that are right, with its interval."""
    right, number = correct[rows].astype(np.float64), int(rows.sum())
    value = float(right.mean())
    influence = np.where(rows, (correct - value) / number, 0.0)
    if units.index is None:
        return Part(value, *share_interval(value, number, units.confidence), influence, name, number)
    of_row = np.unique(units.index[rows], return_inverse=True)[1]
    sizes = np.bincount(of_row).astype(np.float64)
    if len(sizes) < 2:
        return unknown_part(value, influence, name, len(sizes))
    effective = effective_number(np.bincount(of_row, weights=right), sizes, units)
    return Part(value, *share_interval(value, effective, units.confidence), influence, name, len(sizes))


def share_of_images(correct: PerImage | Rows, groups: np.ndarray | None, *, confidence: float = 0.95) -> MetricValue:
    """Mean of right or wrong (or of shares in [0, 1]) with the interval of ``accuracy``, or the reason why it has none."""
    units = Units(groups, len(correct), confidence)
    return mean_of_parts([share_part(correct, np.ones(len(correct), dtype=bool), units, "")], units)
