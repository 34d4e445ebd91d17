"""Models of one audit beside each other: how much more each relies on an artefact than the one that relies on it least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossgraft.audit._area_terms import ByShare, difference_of_areas, ood_terms, reliance_terms, scores_by_share
from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.record import AuditDifference, AuditDifferencePoint, AuditEntry, AuditMetric
from crossgraft.metrics import MetricValue
from crossgraft.statistics import ExactTest, holm, two_sample_permutation


@dataclass(frozen=True, eq=False)
class SweptModel:
    """What one model says, trained plainly, with one confounder.

    Attributes:
        entry: What the report says of it.
        scores: Every fold at every share.
        tested: The test images, the same for all models.
    """

    entry: AuditEntry
    scores: Sequence[FoldScores]
    tested: AuditedImages

    @property
    def reliance(self) -> float | None:
        """Its SRI; None where it says nothing about the model."""
        found = self.entry.metric("shortcut_reliance_index")
        return found.value if found is not None and self.entry.is_assessable else None


@dataclass(frozen=True)
class ShareDifference:
    """Two models at one share.

    Attributes:
        share: p_art.
        ood: O.o.d. AUC of the first minus that of the second, mean over folds, with the interval of the test images.
        over_folds: Exact two-sample permutation test of the o.o.d. AUC of the folds.
    """

    share: float
    ood: MetricValue
    over_folds: ExactTest


@dataclass(frozen=True)
class ModelDifference:
    """Two models with one confounder, the first minus the second.

    Attributes:
        shortcut_reliance_index: Difference of the SRI in exact mode, with the interval of the test images.
        by_share: One per share.
    """

    shortcut_reliance_index: MetricValue
    by_share: tuple[ShareDifference, ...]


def model_difference(first: Sequence[FoldScores], second: Sequence[FoldScores], tested: AuditedImages) -> ModelDifference:
    """How two models differ on the same test images.

    The primary comparison is the interval by patients, which knows that the images are the same. The test over folds takes the
    folds as independent, and cannot be smaller than its floor: 2 / 252 for five folds against five.

    Args:
        first: Every fold at every share.
        second: The same folds and shares of the other model.
        tested: The test images.

    Raises:
        ValueError: Shares or folds are others.

    Cost: O(n log n) for each of 8 areas per fold and share.

    Source: intervals as of ``auc_combination``; the test over folds is that of Juodelyte's thesis, chapter 4, made exact.
    """
    one, other = scores_by_share(first), scores_by_share(second)
    return ModelDifference(
        difference_of_areas(reliance_terms(one, tested), reliance_terms(other, tested), tested),
        tuple(_at_share(share, one, other, tested) for share in one),
    )


def compare_models_of_audit(swept: Sequence[SweptModel]) -> list[AuditDifference]:
    """Every model beside the one that relies least, confounder by confounder; p-values are corrected over all tests of a model.

    Models that cannot be assessed are neither compared nor compared with.

    Args:
        swept: Every model with every confounder.
    """
    found: list[AuditDifference] = []
    for confounder in dict.fromkeys(each.entry.confounder for each in swept):
        known = [(each.reliance, each) for each in swept if each.entry.confounder == confounder]
        ranked = [each for reliance, each in sorted(known, key=_by_reliance) if reliance is not None]
        found += [_difference(each, ranked[0]) for each in ranked[1:]]
    return _corrected(found)


def _by_reliance(known: tuple[float | None, SweptModel]) -> float:
    return np.inf if known[0] is None else known[0]


def _at_share(share: float, one: ByShare, other: ByShare, tested: AuditedImages) -> ShareDifference:
    areas = [np.array([each.cells(tested).ood for each in of_model[share]]) for of_model in (one, other)]
    difference = difference_of_areas(ood_terms(one[share], tested), ood_terms(other[share], tested), tested)
    return ShareDifference(share, difference, two_sample_permutation(areas[0], areas[1]))


def _difference(model: SweptModel, reference: SweptModel) -> AuditDifference:
    found = model_difference(model.scores, reference.scores, model.tested)
    return AuditDifference(
        confounder=model.entry.confounder,
        model=model.entry.model,
        reference=reference.entry.model,
        reliance=_metric("shortcut_reliance_index", found.shortcut_reliance_index),
        points=[
            AuditDifferencePoint(
                share=each.share,
                ood=_metric("ood", each.ood),
                p_value=each.over_folds.p_value,
                p_value_holm=each.over_folds.p_value,
                floor=each.over_folds.floor,
            )
            for each in found.by_share
        ],
    )


def _metric(name: str, found: MetricValue) -> AuditMetric:
    return AuditMetric(
        name=name,
        value=found.value,
        patients_low=found.low,
        patients_high=found.high,
        no_interval_reason=found.note if found.low is None else None,
    )


def _corrected(found: Sequence[AuditDifference]) -> list[AuditDifference]:
    """Holm over shares and confounders of each model."""
    adjusted = dict[tuple[str, str], list[float]]()
    for model in dict.fromkeys(each.model for each in found):
        of_model = [each for each in found if each.model == model]
        left = iter(holm([point.p_value for each in of_model for point in each.points]))
        adjusted |= {(each.confounder, model): [next(left) for _ in each.points] for each in of_model}
    return [
        each.model_copy(
            update={
                "points": [
                    point.model_copy(update={"p_value_holm": value})
                    for point, value in zip(each.points, adjusted[each.confounder, each.model], strict=True)
                ]
            }
        )
        for each in found
    ]
