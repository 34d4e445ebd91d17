"""Differences and other sums of areas under the ROC curve that were measured on the same images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from crossgraft.errors import DataError
from crossgraft.metrics._intervals import CONFIDENCE, LEAST_UNITS, MetricValue, Sum, Units, no_interval
from crossgraft.metrics.auc import auc_part, checked_scores
from crossgraft.types import Groups

Scores = Float[np.ndarray, " n"] | Float[np.ndarray, "n c"]


def auc_difference(
    first: Scores, second: Scores, targets: np.ndarray, groups: Groups | None = None, *, confidence: float = CONFIDENCE
) -> MetricValue:
    """AUC of the first scores minus AUC of the second, with an interval of 95 % that knows that the images are the same.

    Both areas have the interval of ``auc``; they are squared and added with the correlation of DeLong's components (``Sum``).
    Models with the very same scores differ by 0 here, and by up to 1 − (α/2)^(1/u) elsewhere, where u is the number of images, or
    patients, of the smaller class: none of them changed.

    Args:
        first: Scores of one model as ``auc`` takes them; (n, C) gives the difference of the means over classes.
        second: Scores of another model, of the same images.
        targets: Targets as of ``auc``.
        groups: Patient of each image; None takes the images as independent.
        confidence: Confidence of the interval.

    Raises:
        DataError: Shapes that do not match, no image, or a score that is not a number.
        NotApplicable: All images are of one class.
        UsageError: The confidence is not between 0 and 1.

    Cost: O(n log n).

    Reference:
        DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988) 837; Obuchowski, Biometrics 53 (1997) 567; Zou and Donner, Stat.
        Med. 27 (2008) 1693.
    """
    if len(first) != len(second):
        raise DataError(f"Both models need a score of each image; there are {len(first)} and {len(second)}.")
    return auc_combination([(1.0, first), (-1.0, second)], targets, groups, confidence=confidence)


def auc_combination(
    terms: Sequence[tuple[float, Scores]],
    targets: np.ndarray,
    groups: Groups | None = None,
    *,
    among: Sequence[Bool[np.ndarray, " n"]] | None = None,
    confidence: float = CONFIDENCE,
) -> MetricValue:
    """Σ c AUC(scores) over several scores of the same images, with an interval of 95 % that knows that they are the same.

    Terms of the same scores count as one, with the sum of their coefficients; all else as in ``auc_difference``.

    Args:
        terms: Pairs of a coefficient c and scores as ``auc`` takes them.
        targets: Targets as of ``auc``.
        groups: Patient of each image; None takes the images as independent.
        among: (n,) per term, the images that its area is of; None: all of them.
        confidence: Confidence of the interval.

    Raises:
        DataError: There is no term, shapes do not match, or a score or coefficient is not a number.
        NotApplicable: All images are of one class.
        UsageError: The confidence is not between 0 and 1.

    Cost: O(n log n) per term.
    """
    coefficients = np.array([coefficient for coefficient, _ in terms], dtype=np.float64)
    if not len(terms) or not np.isfinite(coefficients).all():
        raise DataError("A combination of areas needs at least one term, and finite coefficients.")
    units = Units(groups, len(terms[0][1]), confidence)
    everyone = np.ones(units.num_images, dtype=bool)
    masks = [everyone] * len(terms) if among is None else [np.asarray(mask, dtype=bool) for mask in among]
    bound = max(float(coefficients[coefficients > 0].sum()), -float(coefficients[coefficients < 0].sum())) or 1.0
    total, fewest = Sum(units), units.number
    for coefficient, scores, is_positive, mask in _merged(_of_classes(terms, targets, masks)):
        within = Units(None if groups is None else groups[mask], int(mask.sum()), confidence)
        part = auc_part(scores, is_positive, within, "")
        fewest = min(fewest, part.num_units)
        if coefficient:
            influence = np.zeros(units.num_images)
            influence[mask] = part.influence
            total.add(part._replace(influence=influence), coefficient)
    if fewest < LEAST_UNITS:
        what = "there is one image of a class" if groups is None else "images of a class belong to one group"
        return no_interval(total.value, units, f"{what}, so nothing is known about others")
    below, above = total.reach
    if not total.number:
        below = above = min(bound, 1.0) * (1 - ((1 - confidence) / 2) ** (1 / fewest))
    low, high = max(-bound, total.value - below), min(bound, total.value + above)
    return MetricValue(total.value, low, high, units.num_images, units.num_groups)


class _Term(NamedTuple):
    """One area of two classes: its coefficient, the scores of its images, which are positive, and which images they are."""

    coefficient: float
    scores: Float[np.ndarray, " k"]
    is_positive: Bool[np.ndarray, " k"]
    mask: Bool[np.ndarray, " n"]


def _of_classes(
    terms: Sequence[tuple[float, Scores]], targets: np.ndarray, masks: Sequence[Bool[np.ndarray, " n"]]
) -> Iterator[_Term]:
    for (coefficient, scores), mask in zip(terms, masks, strict=True):
        columns, checked = checked_scores(scores[mask], targets[mask], None, metric="AUC")
        share = coefficient / len(columns.counted)
        for column in columns.counted:
            yield _Term(share, checked[:, column], columns.truth[:, column], mask)


def _merged(terms: Iterable[_Term]) -> list[_Term]:
    """One term for each order of the same images, with the sum of its coefficients, which may be 0."""
    by_order: dict[bytes, _Term] = {}
    for term in terms:
        order = np.unique(term.scores, return_inverse=True)[1]
        key = order.tobytes() + term.is_positive.tobytes() + term.mask.tobytes()
        before = by_order[key].coefficient if key in by_order else 0.0
        by_order[key] = term._replace(coefficient=before + term.coefficient)
    return list(by_order.values())
