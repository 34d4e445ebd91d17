"""What one model of a sweep says of the test images, and how good that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Float64, Int
from sklearn.metrics import roc_auc_score

from crossgraft.audit.confounded import Unit
from crossgraft.audit.reliance import ExactTestScores, pair_auc
from crossgraft.edit.injection import draw_carriers, num_edited
from crossgraft.errors import DataError, UsageError
from crossgraft.metrics import MetricValue, auc_combination
from crossgraft.seeding import derive_seed
from crossgraft.types import Groups

KERAS_THRESHOLDS = 200
"""What ``keras.metrics.AUC`` has unless it is told otherwise."""


def micro_auc(
    probabilities: Float[np.ndarray, " num_images"], labels: Int[np.ndarray, " num_images"], *, num_thresholds: int | None = None
) -> float:
    """AUC of both columns of a softmax together: each image counts twice, with p for its class 1 and with 1 − p for its class 0.

    It is not the share of pairs in the right order. What gives every image the same p has 0.5 there, and here more, the rarer a
    class is; where every pair is in the wrong order but nothing crosses 0.5, it is far from 0.

    Args:
        probabilities: (n,) of class 1, in [0, 1].
        labels: (n,) 0 or 1.
        num_thresholds: Number of thresholds of ``keras.metrics.AUC``, from just below 0 to just above 1 in equal steps;
            probabilities between the same two are ties. None: exact.

    Raises:
        DataError: Lengths differ, a probability is not in [0, 1], a label is not 0 or 1, or there are no images.
        UsageError: There are fewer than two thresholds.

    Cost: a sort of 2n numbers.

    Source: ``keras.metrics.AUC`` on flattened one-hot labels, as in the released code of Juodelyte's thesis.
    """
    p, y = np.asarray(probabilities, dtype=np.float64), np.asarray(labels)
    if p.shape != y.shape or p.ndim != 1 or not len(p):
        raise DataError(f"Each image needs a probability and a label; got {p.shape} and {y.shape}.")
    if not ((p >= 0) & (p <= 1)).all() or not np.isin(y, (0, 1)).all():
        raise DataError("Probabilities must lie in [0, 1], and labels must be 0 or 1.")
    scores = np.r_[1 - p, p]
    if num_thresholds is not None:
        if num_thresholds < 2:
            raise UsageError(f"num_thresholds must be at least 2, got {num_thresholds}.")
        # how many thresholds a probability exceeds: the first one always, the last one never
        scores = np.maximum(np.ceil(scores * (num_thresholds - 1)), 1)
    return float(roc_auc_score(np.r_[1 - y, y], scores))


Probabilities = Float64[np.ndarray, " num_test"]
Flags = Bool[np.ndarray, " num_test"]


@dataclass(frozen=True, eq=False)
class AuditedImages:
    """The test images, which are the same for all models.

    Attributes:
        is_positive: (n,) whether an image is of the class in question.
        groups: (n,) patient, or None.
        identities: What draws depend on.
        attribute: (n,) who belongs to the group in question, where that is what confounds; None for an artefact, which
            every image is looked at with and without.
        num_drawn: Positives of a draw of i.i.d. test images, or patients with positives where whole patients carry it; None:
            all positives.
        negatives: Share of the negatives that carry it in i.i.d. test images, which is that of training.
        num_drawn_negatives: As ``num_drawn``.
    """

    is_positive: Flags
    groups: Groups | None
    identities: list[str]
    attribute: Flags | None = None
    num_drawn: int | None = None
    negatives: float = 0.0
    num_drawn_negatives: int | None = None

    @property
    def sides(self) -> tuple[Flags, Flags]:
        """Images that are looked at without what confounds, and those with it: all of them for an artefact."""
        if self.attribute is None:
            everyone = np.ones(len(self.is_positive), dtype=bool)
            return everyone, everyone
        return ~self.attribute, self.attribute

    def carrying(self, share: float) -> tuple[int, int]:
        """Positives of an i.i.d. draw that carry what confounds, and all of them; or the same of patients."""
        number = int(self.is_positive.sum()) if self.num_drawn is None else self.num_drawn
        return num_edited(number, share), number

    @property
    def carrying_negatives(self) -> float:
        """Share of the negatives, or of the patients with some, that carries what confounds in an i.i.d. draw, as realised."""
        number = int((~self.is_positive).sum()) if self.num_drawn_negatives is None else self.num_drawn_negatives
        return num_edited(number, self.negatives) / number


@dataclass(frozen=True, eq=False)
class FoldScores:
    """One model: trained in a fold, at one share.

    Attributes:
        fold: Number of the fold.
        share: p_art that was asked for.
        realised: Share of the training positives that carry the artefact.
        clean: (n,) probabilities of the class in question, of the test images as they are.
        edited: (n,) of the same images with the artefact; ``clean`` itself for an attribute.
        decided: (2, n) whether an image is decided positive at 0.5, without and with the artefact.
        decided_by_val: (2, n) the same at the threshold that val picks.
        best_epoch: Epoch that was kept, where a network was trained.
    """

    fold: int
    share: float
    realised: float
    clean: Probabilities
    edited: Probabilities
    decided: Bool[np.ndarray, "2 num_test"]
    decided_by_val: Bool[np.ndarray, "2 num_test"]
    best_epoch: int | None = None

    def cells(self, tested: AuditedImages) -> ExactTestScores:
        """Scores of positives and negatives, without and with what confounds."""
        positive, without, with_it = tested.is_positive, *tested.sides
        return ExactTestScores(
            self.clean[positive & without],
            self.edited[positive & with_it],
            self.clean[~positive & without],
            self.edited[~positive & with_it],
        )

    def sampled_iid(self, tested: AuditedImages, share: float, *, unit: Unit = "image", seed: int) -> float:
        """AUC where drawn shares of the test images carry the artefact, as the released code measures."""
        scores = self._sampled(tested, share, unit, seed)
        return pair_auc(scores[tested.is_positive], scores[~tested.is_positive])

    def micro_aucs(self, tested: AuditedImages, share: float, *, unit: Unit = "image", seed: int) -> tuple[float, float]:
        """The same, and o.o.d., as the released code computes areas: for comparison with published curves alone."""
        ood = np.where(tested.is_positive, self.clean, self.edited)
        both, labels = (self._sampled(tested, share, unit, seed), ood), tested.is_positive.astype(np.int64)
        iid, against = (micro_auc(scores, labels, num_thresholds=KERAS_THRESHOLDS) for scores in both)
        return iid, against

    def _sampled(self, tested: AuditedImages, share: float, unit: Unit, seed: int) -> Probabilities:
        groups = tested.groups if unit == "patient" else None
        carrying = draw_carriers(tested.is_positive, share, tested.identities, groups=groups, seed=seed)
        if tested.negatives:
            of_negatives = derive_seed(seed, "negatives")  # patients with both classes are drawn twice, independently
            carrying |= draw_carriers(~tested.is_positive, tested.negatives, tested.identities, groups=groups, seed=of_negatives)
        return np.where(carrying, self.edited, self.clean)


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
    by_share = dict[float, list[FoldScores]]()
    for each in sorted(scores, key=lambda one: (one.share, one.fold)):
        by_share.setdefault(each.share, []).append(each)
    return by_share


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
    positive, terms = tested.is_positive, list[AreaTerm]()
    without, with_it = tested.sides
    aligned, clean = np.where(positive, with_it, without), without
    for weight, (share, of_share) in zip(weights.tolist(), by_share.items(), strict=True):
        each = weight / len(of_share)
        carrying, number = tested.carrying(share)
        for one in of_share:
            # as differences, so that an artefact that changes nothing gives exactly 0
            terms += [
                AreaTerm(each * carrying / number, np.where(positive, one.edited, one.clean), aligned),
                AreaTerm(-each * carrying / number, one.clean, clean),
                AreaTerm(each, one.clean, clean),
                AreaTerm(-each, *_against(one, tested)),
            ]
            if tested.negatives:
                terms += _of_negatives(one, tested, each * tested.carrying_negatives, carrying / number)
    return terms


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
