"""Share of images that are right, with an interval that knows which images belong to one patient.

Ungrouped images are counted as independent: the Wilson score interval. Images of one patient (writer,
lesion …) tend to be right or wrong together, so that n images are worth fewer than n independent ones. How
many is estimated from the spread between patients, and the Wilson interval is taken at that effective number,
with a t quantile because there are few patients.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from crossgraft.errors import DataError, NotApplicable
from crossgraft.statistics import Estimate, jackknife_interval
from crossgraft.types import Groups

Correct = Bool[np.ndarray, " num_samples"] | Float[np.ndarray, " num_samples"]
"""Whether each image is right; a share in [0, 1] when its predictions are averaged, for example over seeds."""
PerGroup = Float[np.ndarray, " num_groups"]


class Accuracy(NamedTuple):
    """An accuracy in [0, 1] with its 95 % interval.

    Attributes:
        value: Share of images that are right.
        low: Lower end of the interval.
        high: Upper end of the interval.
        num_images: Images counted.
        num_groups: Patients (writers, lesions …) they belong to; None when images were taken as independent.
    """

    value: float
    low: float
    high: float
    num_images: int
    num_groups: int | None


def accuracy(correct: Correct, groups: Groups | None = None) -> Accuracy:
    """Accuracy with a 95 % interval: Wilson, at the effective number of images when there are groups.

    With p the accuracy, m the effective number of images and q a quantile,
    (p + q²/2m ± q·√(p(1−p)/m + q²/4m²)) / (1 + q²/m).
    Ungrouped: m = n and q is normal. With G groups: m = p(1−p)/v, at most n, where v is the delete-one-group
    jackknife variance of p, and q is Student's t with G − 1 degrees of freedom. When every image is right, or
    every one wrong, nothing can be said about the spread between groups, and m = G: each group counts once.

    Args:
        correct: Whether (or in which share of repetitions) each image is right.
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: No image, a value outside [0, 1], or the lengths differ.
        NotApplicable: All images belong to one group, so that nothing is known about other groups.

    Reference:
        Wilson, J. Am. Stat. Assoc. 22 (1927) 209; for clusters Kott and Carr, J. Off. Stat. 13 (1997) 81,
        compared with others by Dean and Pagano, J. Surv. Stat. Methodol. 3 (2015) 484.

    >>> [round(number, 3) for number in accuracy(np.array([True] * 9 + [False]))[:3]]
    [0.9, 0.596, 0.982]
    """
    shares = _checked(correct, groups)
    value = float(shares.mean())
    num_images = float(len(shares))
    if groups is None:
        low, high = wilson_interval(value, num_images, float(stats.norm.ppf(0.975)))
        return Accuracy(value, low, high, len(shares), None)
    rights, sizes = _by_group(shares, groups)
    num_groups = len(sizes)
    if num_groups < 2:
        raise NotApplicable(
            f"All {len(shares)} images belong to one group, so their accuracy of {value:.3f} has no interval for other "
            "groups. Test on at least two, or leave the groups out to take the images as independent."
        )
    effective = _effective_number(value, rights, sizes)
    low, high = wilson_interval(value, effective, float(stats.t.ppf(0.975, num_groups - 1)))
    return Accuracy(value, low, high, len(shares), num_groups)


def accuracy_difference(first: Correct, second: Correct, groups: Groups | None = None) -> Estimate:
    """Accuracy of ``first`` minus that of ``second`` on the same images, with a 95 % jackknife interval.

    Pairing the images removes what makes an image hard for both, so that this interval is narrower than what
    two separate accuracies suggest. Whole groups are left out one at a time, single images without groups.

    Args:
        first: Whether each image is right by the first method.
        second: The same images by the second method.
        groups: Patient of each image; None takes the images as independent.

    Returns:
        The difference in [−1, 1] with standard error and interval.

    Raises:
        DataError: No image, a value outside [0, 1], or the lengths differ.
        NotApplicable: There is only one group (or one image).
    """
    if len(first) != len(second):
        raise DataError(f"second has {len(second)} rows and first {len(first)}; they must be the same images.")
    difference = _checked(first, groups) - _checked(second, groups)
    rights, sizes = _by_group(difference, np.arange(len(difference)) if groups is None else groups)
    if len(sizes) < 2:
        raise NotApplicable("A difference of accuracies needs at least two groups (or images) for its interval.")
    return jackknife_interval(float(difference.mean()), _without_each_group(rights, sizes))


def _checked(correct: Correct, groups: Groups | None) -> Float[np.ndarray, " num_samples"]:
    shares = np.asarray(correct, dtype=np.float64)
    if shares.size == 0:
        raise DataError("An accuracy needs at least one image; there is none.")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise DataError(
            "correct must hold booleans or shares in [0, 1], one for each image; pass predictions == labels."
        )
    if groups is not None and len(groups) != len(shares):
        raise DataError(f"groups has {len(groups)} rows and correct {len(shares)}; they must match.")
    return shares


def _by_group(values: Float[np.ndarray, " num_samples"], groups: Groups) -> tuple[PerGroup, PerGroup]:
    index: Int[np.ndarray, " num_samples"] = np.unique(groups, return_inverse=True)[1]
    return np.bincount(index, weights=values), np.bincount(index).astype(np.float64)


def _effective_number(value: float, rights: PerGroup, sizes: PerGroup) -> float:
    """How many independent images have the variance that the groups show."""
    spread, num_images = value * (1 - value), float(sizes.sum())
    if spread == 0:
        return float(len(sizes))
    variance = jackknife_interval(value, _without_each_group(rights, sizes)).standard_error ** 2
    return min(spread / variance, num_images) if variance > 0 else num_images


def _without_each_group(totals: PerGroup, sizes: PerGroup) -> PerGroup:
    return (totals.sum() - totals) / (sizes.sum() - sizes)


def wilson_interval(share: float, num_images: float, quantile: float) -> tuple[float, float]:
    """Wilson's interval of a share, at any number of images it is worth and any quantile."""
    ratio = quantile**2 / num_images
    centre = share + ratio / 2
    half_width = math.sqrt(ratio * share * (1 - share) + ratio**2 / 4)
    return max(0.0, (centre - half_width) / (1 + ratio)), min(1.0, (centre + half_width) / (1 + ratio))
