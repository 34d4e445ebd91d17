"""Share of images that are right, and its difference between two methods, where groups of images belong together."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.errors import DataError, NotApplicable
from crossgraft.metrics._intervals import CONFIDENCE, Sum, Units, share_part
from crossgraft.statistics import Estimate
from crossgraft.types import Groups

Correct = Bool[np.ndarray, " num_samples"] | Float[np.ndarray, " num_samples"]
"""Whether each image is right; a share in [0, 1] when its predictions are averaged, for example over seeds."""


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


def accuracy(correct: Correct, groups: Groups | None = None, *, confidence: float = CONFIDENCE) -> Accuracy:
    """Accuracy with Clopper and Pearson's exact interval, at the number of images that groups are worth.

    Images of one patient (writer, lesion …) tend to be right or wrong together, so that n images are worth fewer than n
    independent ones. How many is told by the spread between patients, by few of them with care (``effective_number``). Where all
    are right, or all wrong, each group counts about once.

    Args:
        correct: Whether (or in which share of repetitions) each image is right.
        groups: Patient of each image; None takes the images as independent.
        confidence: Confidence of the interval.

    Raises:
        DataError: No image, a value outside [0, 1], or the lengths differ.
        NotApplicable: All images belong to one group, so that nothing is known about other groups.
        UsageError: The confidence is not between 0 and 1.

    Reference:
        Clopper and Pearson, Biometrika 26 (1934) 404; for clusters Korn and Graubard, Survey Methodology 24 (1998) 193.

    >>> [round(number, 3) for number in accuracy(np.array([True] * 9 + [False]))[:3]]
    [0.9, 0.555, 0.997]
    """
    shares = _checked(correct, groups)
    units = Units(groups, len(shares), confidence)
    part = share_part(shares, np.ones(len(shares), dtype=bool), units, "")
    if not part.is_known:
        raise NotApplicable(
            f"All {len(shares)} images belong to one group, so their accuracy of {part.value:.3f} has no interval for other "
            "groups. Test on at least two, or leave the groups out to take the images as independent."
        )
    return Accuracy(part.value, part.low, part.high, len(shares), units.num_groups)


def accuracy_difference(
    first: Correct, second: Correct, groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> Estimate:
    """Accuracy of ``first`` minus that of ``second`` on the same images, with a 95 % interval.

    Pairing removes what makes an image hard for both: the difference is the share of images that only the first gets right minus
    the share that only the second does. Both have the interval of ``accuracy``, and are squared and added with their correlation.
    Where both agree on every image the interval says how often they may differ on others.

    Args:
        first: Whether each image is right by the first method.
        second: The same images by the second method.
        groups: Patient of each image; None takes the images as independent.
        confidence: Confidence of the interval.

    Returns:
        The difference in [−1, 1] with standard error (of the influences, over groups) and interval.

    Raises:
        DataError: No image, a value outside [0, 1], or the lengths differ.
        NotApplicable: There is only one group (or one image).
        UsageError: The confidence is not between 0 and 1.

    Reference:
        Newcombe, Stat. Med. 17 (1998) 2635, whose method 10 squares and adds the intervals of both accuracies; here of the two
        discordant shares, which needs no correction of the correlation.
    """
    if len(first) != len(second):
        raise DataError(f"second has {len(second)} rows and first {len(first)}; they must be the same images.")
    difference = _checked(first, groups) - _checked(second, groups)
    units = Units(groups, len(difference), confidence)
    if units.number < 2:
        raise NotApplicable("A difference of accuracies needs at least two groups (or images) for its interval.")
    everyone, total = np.ones(len(difference), dtype=bool), Sum(units)
    total.add(share_part(np.maximum(difference, 0), everyone, units, ""))
    total.add(share_part(np.maximum(-difference, 0), everyone, units, ""), -1.0)
    value = float(difference.mean())
    below, above = total.reach
    deviations = units.sum_of_squares((difference - value) / len(difference)) * units.number / (units.number - 1)
    return Estimate(value, math.sqrt(deviations), max(-1.0, value - below), min(1.0, value + above))


def _checked(correct: Correct, groups: Groups | None) -> Float[np.ndarray, " num_samples"]:
    shares = np.asarray(correct, dtype=np.float64)
    if shares.size == 0:
        raise DataError("An accuracy needs at least one image; there is none.")
    if not ((shares >= 0) & (shares <= 1)).all():
        raise DataError("correct must hold booleans or shares in [0, 1], one for each image; pass predictions == labels.")
    if groups is not None and len(groups) != len(shares):
        raise DataError(f"groups has {len(groups)} rows and correct {len(shares)}; they must match.")
    return shares
