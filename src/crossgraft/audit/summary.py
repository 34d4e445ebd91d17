"""From what the models of a sweep say to how far they rely on the artefact, with intervals over folds and over patients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from crossgraft.audit._area_terms import reliance_terms, scores_by_share, sum_of_areas
from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.group_metrics import GroupMetrics, group_metrics
from crossgraft.audit.reliance import (
    Curves,
    ExactTestScores,
    early_gap,
    flip_effect,
    flip_share,
    ood_drop_area,
    shortcut_reliance_index,
)
from crossgraft.audit.rows import Unit
from crossgraft.metrics import MetricValue
from crossgraft.statistics import MeanInterval, mean_interval

TestMode = Literal["exact", "sampled"]


class SharePoint(NamedTuple):
    """All folds at one share.

    Attributes:
        share: p_art.
        realised: Mean share of the training positives that carry the artefact.
        iid: AUC on test images like those of training.
        ood: AUC where negatives carry it and positives do not.
        clean: AUC where nobody carries it.
        aligned: AUC where all positives carry it and no negative.
        flip_effect: Mean change of the logit of an image that gets it; None for an attribute.
        flip_effects: The same of negatives and of positives.
        groups: Results by class and artefact, of each fold, at a threshold of 0.5.
        worst: Accuracy of the worst cell at 0.5.
        worst_by_val: The same at the threshold that val picks.
        best_epoch: Mean epoch that was kept, where networks were trained.
        micro_aucs: I.i.d. and o.o.d. as published curves have them, where that was asked for.
    """

    share: float
    realised: float
    iid: MeanInterval
    ood: MeanInterval
    clean: MeanInterval
    aligned: MeanInterval
    flip_effect: MeanInterval | None
    groups: tuple[GroupMetrics, ...]
    worst: MeanInterval
    worst_by_val: MeanInterval
    best_epoch: MeanInterval | None
    micro_aucs: tuple[MeanInterval, MeanInterval] | None = None
    flip_effects: tuple[MeanInterval, MeanInterval] | None = None


class Reliance(NamedTuple):
    """How far a model relies on the artefact.

    Attributes:
        shortcut_reliance_index: SRI over folds.
        over_patients: The same SRI with the interval of the test images, which all folds share.
        ood_drop_area: What is lost out of distribution, over folds.
        early_gap: Gap at the smallest share above 0, less that at 0, over folds.
        flip_share: Share at which the mean o.o.d. curve crosses chance; None: never.
        clean: AUC of the models of share 0 on clean images, over folds.
        points: One per share.
        curves: One per fold.
    """

    shortcut_reliance_index: MeanInterval
    over_patients: MetricValue
    ood_drop_area: MeanInterval
    early_gap: MeanInterval
    flip_share: float | None
    clean: MeanInterval
    points: tuple[SharePoint, ...]
    curves: tuple[Curves, ...]


class IidDraw(NamedTuple):
    """How i.i.d. test images come about.

    Attributes:
        mode: ``exact``: means over all draws of carriers among the test positives. ``sampled``: one draw per share, as the
            released code does.
        unit: What that draw is of: images, or whole patients.
        seed: Random seed of the draw.
        micro: Whether areas are also computed as the released code does.
    """

    mode: TestMode = "exact"
    unit: Unit = "image"
    seed: int = 0
    micro: bool = False


def reliance_of(scores: Sequence[FoldScores], tested: AuditedImages, draw: IidDraw | None = None) -> Reliance:
    """Curves of each fold, and their summaries.

    Args:
        scores: Every fold at every share, in any order.
        tested: The test images.
        draw: How i.i.d. test images come about; None: exact means over all draws.

    Raises:
        DataError: The share 0 is missing, or there are fewer than three shares.

    Source: SRI and its relatives are this project's; i.i.d. and o.o.d. are those of Juodelyte's thesis, chapter 4.
    """
    draw, by_share = draw or IidDraw(), scores_by_share(scores)
    points = tuple(_point(of_share, tested, draw) for of_share in by_share.values())
    shares = np.array(list(by_share))
    curves = tuple(
        Curves(shares, iid, ood)
        for iid, ood in zip(
            np.array([[_iid(one, tested, draw) for one in of_share] for of_share in by_share.values()]).T,
            np.array([[one.cells(tested).ood for one in of_share] for of_share in by_share.values()]).T,
            strict=True,
        )
    )
    return Reliance(
        shortcut_reliance_index=_over(curves, shortcut_reliance_index),
        over_patients=sum_of_areas(reliance_terms(by_share, tested), tested),
        ood_drop_area=_over(curves, ood_drop_area),
        early_gap=_over(curves, early_gap),
        flip_share=flip_share(shares, np.mean([curve.ood for curve in curves], axis=0)),
        clean=points[0].clean,
        points=points,
        curves=curves,
    )


def _over(curves: Sequence[Curves], what: Callable[[np.ndarray, np.ndarray, np.ndarray], float]) -> MeanInterval:
    return mean_interval(np.array([what(*curve) for curve in curves]))


def _point(of_share: Sequence[FoldScores], tested: AuditedImages, draw: IidDraw) -> SharePoint:
    cells = [one.cells(tested) for one in of_share]
    groups = tuple(_groups(one, tested, one.decided) for one in of_share)
    by_val = [_groups(one, tested, one.decided_by_val) for one in of_share]
    epochs = [float(one.best_epoch) for one in of_share if one.best_epoch is not None]
    micro = [one.micro_aucs(tested, one.share, unit=draw.unit, seed=draw.seed) for one in of_share if draw.micro]
    flips = [flip_effect(one.clean, one.edited) for one in of_share] if tested.attribute is None else []

    def mean(read: Callable[[ExactTestScores], float]) -> MeanInterval:
        return mean_interval(np.array([read(each) for each in cells]), limits=(0.0, 1.0))

    return SharePoint(
        share=of_share[0].share,
        realised=float(np.mean([one.realised for one in of_share])),
        iid=mean_interval(np.array([_iid(one, tested, draw) for one in of_share]), limits=(0.0, 1.0)),
        ood=mean(lambda each: each.ood),
        clean=mean(lambda each: each.clean),
        aligned=mean(lambda each: each.aligned),
        flip_effect=mean_interval(np.array(flips)) if flips else None,
        groups=groups,
        worst=mean_interval(np.array([each.worst.accuracy.value for each in groups]), limits=(0.0, 1.0)),
        worst_by_val=mean_interval(np.array([each.worst.accuracy.value for each in by_val]), limits=(0.0, 1.0)),
        best_epoch=mean_interval(np.array(epochs)) if epochs else None,
        flip_effects=None if tested.attribute is not None else _by_class(of_share, tested),
        micro_aucs=(mean_interval(np.array(micro)[:, 0]), mean_interval(np.array(micro)[:, 1])) if micro else None,
    )


def _by_class(of_share: Sequence[FoldScores], tested: AuditedImages) -> tuple[MeanInterval, MeanInterval]:
    """Flip effects of negatives and of positives."""
    of_negatives, of_positives = (
        mean_interval(np.array([flip_effect(one.clean[rows], one.edited[rows]) for one in of_share]))
        for rows in (~tested.is_positive, tested.is_positive)
    )
    return of_negatives, of_positives


def _iid(one: FoldScores, tested: AuditedImages, draw: IidDraw) -> float:
    if draw.mode == "sampled" and tested.attribute is None:
        return one.sampled_iid(tested, one.share, unit=draw.unit, seed=draw.seed)
    return one.cells(tested).iid(one.share, tested.num_drawn, negatives=tested.carrying_negatives)


def _groups(one: FoldScores, tested: AuditedImages, decided: np.ndarray) -> GroupMetrics:
    """Both versions of every image, or for an attribute every image once."""
    labels = tested.is_positive.astype(np.int64)
    if tested.attribute is not None:
        flags = tested.attribute.astype(np.int64)
        return group_metrics(one.clean, labels, flags, groups=tested.groups, decided=decided[0])
    twice = np.tile(np.arange(len(labels)), 2) if tested.groups is None else np.r_[tested.groups, tested.groups]
    return group_metrics(
        np.r_[one.clean, one.edited],
        np.r_[labels, labels],
        np.repeat([0, 1], len(labels)),
        groups=twice,
        decided=np.r_[decided[0], decided[1]],
    )
