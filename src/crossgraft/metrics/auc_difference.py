"""The difference of two areas under the ROC curve that were measured on the same images."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from crossgraft.errors import DataError
from crossgraft.metrics._intervals import MetricValue, Spread, Units, smooth_part
from crossgraft.metrics.auc import auc_influence, checked_scores
from crossgraft.types import Groups

Scores = Float[np.ndarray, " n"]


def auc_difference(first: Scores, second: Scores, targets: np.ndarray, groups: Groups | None = None) -> MetricValue:
    """AUC of the first scores minus AUC of the second, with an interval of 95 % that knows that the images are the same.

    Where both models place all images alike, the interval has no width, however few images there are.
    d ± t SE, where the variance is the sum over images, or over patients, of the squared difference of their influences on
    both areas, corrected and with degrees of freedom as of ``auc``.

    Args:
        first: (n,) scores of one model, larger = rather class 1.
        second: (n,) of another model, of the same images.
        targets: (n,) class 0 or 1.
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: All images are of one class.

    Cost: O(n log n).

    Reference:
        DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837; Obuchowski, Biometrics 53 (1997) 567.
    """
    if len(first) != len(second):
        raise DataError(f"Both models need a score of each image; there are {len(first)} and {len(second)}.")
    units = Units(groups, len(first))
    columns, of_first = checked_scores(first, targets, None, metric="AUC")
    _, of_second = checked_scores(second, targets, None, metric="AUC")
    is_positive = columns.truth[:, 0]
    one, of_one = auc_influence(of_first[:, 0], is_positive)
    other, of_other = auc_influence(of_second[:, 0], is_positive)
    # as a number in [0, 1], which the corrections are written for
    part = smooth_part(
        (1 + one - other) / 2, (of_one - of_other) / 2, is_positive, units, "difference", interval=_symmetric
    )
    if not part.is_known:
        note = "No interval: images of a class belong to one group, so nothing is known about other groups."
        return MetricValue(one - other, None, None, units.num_images, units.num_groups, note=note)
    low, high = (2 * end - 1 for end in (part.low, part.high))
    return MetricValue(one - other, max(-1.0, low), min(1.0, high), units.num_images, units.num_groups)


def _symmetric(value: float, spread: Spread) -> tuple[float, float]:
    """No width where both models order the images alike."""
    half = 0.0 if spread.variance is None else spread.quantile * math.sqrt(spread.variance)
    return value - half, value + half
