"""Models of one audit beside each other: how much more each relies on an artefact than the one that relies on it least."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crossgraft.audit.fold_scores import (
    AuditedImages,
    FoldScores,
    difference_of_areas,
    ood_terms,
    reliance_terms,
    scores_by_share,
)
from crossgraft.audit.record import AuditDifference, AuditDifferencePoint, AuditEntry, AuditMetric
from crossgraft.metrics import MetricValue
from crossgraft.statistics import holm, two_sample_permutation


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
        index = self.entry.metric("shortcut_reliance_index")
        return index.value if index is not None and self.entry.is_assessable else None


def model_difference(model: SweptModel, reference: SweptModel) -> AuditDifference:
    """How two models with one confounder differ on the same test images, the first minus the second.

    The primary comparison is the interval by patients, which knows that the images are the same. The test over folds takes the
    folds as independent, and cannot be smaller than its floor: 2 / 252 for five folds against five. Its p-values are not
    corrected here.

    Args:
        model: Every fold at every share.
        reference: The same folds and shares of the other model.

    Raises:
        ValueError: Shares or folds are others.

    Cost: O(n log n) for each of 8 areas per fold and share.

    Source: intervals as of ``auc_combination``; the test over folds is that of Juodelyte's thesis, chapter 4, made exact.
    """
    tested = model.tested
    one, other = scores_by_share(model.scores), scores_by_share(reference.scores)
    reliance = difference_of_areas(reliance_terms(one, tested), reliance_terms(other, tested), tested)
    return AuditDifference(
        confounder=model.entry.confounder,
        model=model.entry.model,
        reference=reference.entry.model,
        reliance=_metric("shortcut_reliance_index", reliance),
        points=[_at_share(share, one[share], other[share], tested) for share in one],
    )


def compare_models_of_audit(swept: Sequence[SweptModel]) -> list[AuditDifference]:
    """Every model beside the one that relies least, confounder by confounder; p-values are corrected over all tests of a model.

    Models that cannot be assessed are neither compared nor compared with.
    """
    differences: list[AuditDifference] = []
    for confounder in dict.fromkeys(each.entry.confounder for each in swept):
        known = [(each.reliance, each) for each in swept if each.entry.confounder == confounder and each.reliance is not None]
        ranked = [each for _, each in sorted(known, key=lambda pair: pair[0])]
        differences += [model_difference(each, ranked[0]) for each in ranked[1:]]
    return _corrected(differences)


def _at_share(
    share: float, one: Sequence[FoldScores], other: Sequence[FoldScores], tested: AuditedImages
) -> AuditDifferencePoint:
    areas = [np.array([fold.cells(tested).ood for fold in folds]) for folds in (one, other)]
    over_folds = two_sample_permutation(areas[0], areas[1])
    return AuditDifferencePoint(
        share=share,
        ood=_metric("ood", difference_of_areas(ood_terms(one, tested), ood_terms(other, tested), tested)),
        p_value=over_folds.p_value,
        p_value_holm=over_folds.p_value,
        floor=over_folds.floor,
    )


def _metric(name: str, difference: MetricValue) -> AuditMetric:
    return AuditMetric(
        name=name,
        value=difference.value,
        patients_low=difference.low,
        patients_high=difference.high,
        no_interval_reason=difference.note if difference.low is None else None,
    )


def _corrected(differences: Sequence[AuditDifference]) -> list[AuditDifference]:
    """Holm over shares and confounders of each model."""
    adjusted = dict[tuple[str, str], list[float]]()
    for model in dict.fromkeys(each.model for each in differences):
        of_model = [each for each in differences if each.model == model]
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
        for each in differences
    ]
