"""Sums of areas under the ROC curve of one model, all of the same test images, as ``auc_combination`` takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64

from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.metrics import MetricValue, auc_combination

ByShare = Mapping[float, Sequence[FoldScores]]
"""Share → scores of its folds."""


class AreaTerm(NamedTuple):
    """One area of a sum.

    Attributes:
        coefficient: Its weight.
        scores: (n,) scores of the test images.
        among: (n,) images that the area is of.
    """

    coefficient: float
    scores: Float64[np.ndarray, " num_test"]
    among: Bool[np.ndarray, " num_test"]


def scores_by_share(scores: Sequence[FoldScores]) -> dict[float, list[FoldScores]]:
    """Shares and folds in their order."""
    found = dict[float, list[FoldScores]]()
    for each in sorted(scores, key=lambda one: (one.share, one.fold)):
        found.setdefault(each.share, []).append(each)
    return found


def reliance_terms(by_share: ByShare, tested: AuditedImages) -> list[AreaTerm]:
    """The mean SRI of the folds.

    SRI = Σ_p w_p gap(p) − gap(0) Σ_p w_p with the weights w of the trapezoids, and
    gap(p) = π (A(P₁, N₀) − A(P₀, N₀)) + A(P₀, N₀) − A(P₀, N₁) with π = round(p · P) / P; where a share q of the negatives carries
    the artefact in training, q π (A(P₁, N₁) − A(P₁, N₀)) + q (1 − π) (A(P₀, N₁) − A(P₀, N₀)) more. For an artefact every image is
    in both of its cells; for an attribute in one, and an area is of the images of its two cells alone.
    """
    shares = np.array(list(by_share))
    widths = np.diff(shares)
    weights = (np.r_[widths, 0] + np.r_[0, widths]) / 2
    weights[0] -= widths.sum()
    positive, found = tested.is_positive, list[AreaTerm]()
    without, with_it = tested.sides
    aligned, clean = np.where(positive, with_it, without), without
    for weight, (share, of_share) in zip(weights.tolist(), by_share.items(), strict=True):
        each = weight / len(of_share)
        carrying, number = tested.carrying(share)
        for one in of_share:
            # as differences, so that an artefact that changes nothing gives exactly 0
            found += [
                AreaTerm(each * carrying / number, np.where(positive, one.edited, one.clean), aligned),
                AreaTerm(-each * carrying / number, one.clean, clean),
                AreaTerm(each, one.clean, clean),
                AreaTerm(-each, *_against(one, tested)),
            ]
            if tested.negatives:
                found += _of_negatives(one, tested, each * tested.carrying_negatives, carrying / number)
    return found


def _of_negatives(one: FoldScores, tested: AuditedImages, weight: float, positives: float) -> list[AreaTerm]:
    """What negatives that carry the artefact change in the i.i.d. AUC, as differences."""
    everyone, aligned = np.ones(len(one.clean), dtype=bool), np.where(tested.is_positive, one.edited, one.clean)
    against, _ = _against(one, tested)
    return [
        AreaTerm(weight * positives, one.edited, everyone),
        AreaTerm(-weight * positives, aligned, everyone),
        AreaTerm(weight * (1 - positives), against, everyone),
        AreaTerm(-weight * (1 - positives), one.clean, everyone),
    ]


def ood_terms(of_share: Sequence[FoldScores], tested: AuditedImages) -> list[AreaTerm]:
    """The mean o.o.d. AUC of the folds at one share."""
    return [AreaTerm(1 / len(of_share), *_against(one, tested)) for one in of_share]


def sum_of_areas(terms: Sequence[AreaTerm], tested: AuditedImages) -> MetricValue:
    """Σ c A with the interval of the test images, by patient."""
    return auc_combination(
        [(term.coefficient, term.scores) for term in terms],
        tested.is_positive.astype(np.int64),
        tested.groups,
        among=[term.among for term in terms],
    )


def difference_of_areas(first: Sequence[AreaTerm], second: Sequence[AreaTerm], tested: AuditedImages) -> MetricValue:
    """One sum minus another one of the same form, with an interval that knows that the images are the same.

    Each area stands beside its counterpart, so that models that say the same give exactly 0.
    """
    pairs = zip(first, second, strict=True)
    return sum_of_areas([term for one, other in pairs for term in (one, other._replace(coefficient=-other.coefficient))], tested)


def _against(one: FoldScores, tested: AuditedImages) -> tuple[np.ndarray, np.ndarray]:
    """Scores where negatives carry what confounds and positives do not, and the images of these cells."""
    without, with_it = tested.sides
    positive = tested.is_positive
    return np.where(positive, one.clean, one.edited), np.where(positive, without, with_it)
