"""Differences and other sums of areas under the ROC curve that were measured on the same images."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

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
    return auc_combination([(1.0, first), (-1.0, second)], targets, groups)


def auc_combination(
    terms: Sequence[tuple[float, Scores]],
    targets: np.ndarray,
    groups: Groups | None = None,
    *,
    among: Sequence[Bool[np.ndarray, " n"]] | None = None,
) -> MetricValue:
    """Σ c AUC(scores) over several scores of the same images, with an interval of 95 % that knows that they are the same.

    Influences add up as the areas do; all else as in ``auc_difference``.

    Args:
        terms: Pairs of a coefficient c and (n,) scores, larger = rather class 1.
        targets: (n,) class 0 or 1.
        groups: Patient of each image; None takes the images as independent.
        among: (n,) per term, the images that its area is of; None: all of them.

    Raises:
        DataError: There is no term, shapes do not match, or a score or coefficient is not a number.
        NotApplicable: All images are of one class.

    Cost: O(n log n) per term.
    """
    coefficients = np.array([coefficient for coefficient, _ in terms], dtype=np.float64)
    if not len(terms) or not np.isfinite(coefficients).all():
        raise DataError("A combination of areas needs at least one term, and finite coefficients.")
    units = Units(groups, len(terms[0][1]))
    everyone = np.ones(len(terms[0][1]), dtype=bool)
    masks = [everyone] * len(terms) if among is None else [np.asarray(mask, dtype=bool) for mask in among]
    value, influence, is_positive = 0.0, np.zeros(len(everyone)), np.asarray(targets) == 1
    for (coefficient, scores), mask in zip(terms, masks, strict=True):
        columns, checked = checked_scores(scores[mask], targets[mask], None, metric="AUC")
        area, of_area = auc_influence(checked[:, 0], columns.truth[:, 0])
        value += coefficient * area
        influence[mask] += coefficient * of_area
    bound = max(float(coefficients[coefficients > 0].sum()), -float(coefficients[coefficients < 0].sum())) or 1.0
    # as a number in [0, 1], which the corrections are written for
    part = smooth_part(
        (1 + value / bound) / 2, influence / (2 * bound), is_positive, units, "combination", interval=_symmetric
    )
    if not part.is_known:
        note = "No interval: images of a class belong to one group, so nothing is known about other groups."
        return MetricValue(value, None, None, units.num_images, units.num_groups, note=note)
    low, high = (bound * (2 * end - 1) for end in (part.low, part.high))
    return MetricValue(value, max(-bound, low), min(bound, high), units.num_images, units.num_groups)


def _symmetric(value: float, spread: Spread) -> tuple[float, float]:
    """No width where both models order the images alike."""
    half = 0.0 if spread.variance is None else spread.quantile * math.sqrt(spread.variance)
    return value - half, value + half
