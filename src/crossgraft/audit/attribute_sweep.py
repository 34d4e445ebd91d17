"""An attribute as confounder: nothing is painted, a share only changes which images are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.audit.attributes import AttributeProtocol, BinaryAttribute, attribute_scores, draw_protocol
from crossgraft.audit.confounded import AuditRows, RowNumbers
from crossgraft.audit.fold_scores import AuditedImages, Flags, FoldScores, Probabilities
from crossgraft.audit.group_metrics import GroupMetrics, best_threshold, group_metrics
from crossgraft.audit.mitigation import GroupedRows, Mitigation
from crossgraft.audit.subjects import Subject
from crossgraft.audit.trained import LARGEST_DROP, LEAST_AUC, Outcome, positives_of
from crossgraft.data import Dataset
from crossgraft.metrics import MetricValue, auc, auc_combination
from crossgraft.progress import Reporter


@dataclass(frozen=True)
class TrainedAttributeAudit:
    """One attribute and one trained model. P and N are positives and negatives, 1 with the attribute and 0 without.

    Attributes:
        outcome: ``sensitive``: the interval of the drop lies above 0 or below it, and the drop is larger than ``LARGEST_DROP``.
            ``passes``: all of it lies within ± ``LARGEST_DROP``. ``undecided``: neither, for want of images. ``untrained``: the
            AUC of all images is below ``LEAST_AUC``.
        overall: AUC of all images of which the attribute is known.
        clean: A(P0, N0).
        aligned: A(P1, N0).
        ood: A(P0, N1).
        both: A(P1, N1).
        drop: (A(P1, N0) − A(P0, N1)) / 2, which is 0 where scores depend on the class alone: what the AUC gains where the
            attribute goes with the class, and loses where it goes against it. Below 0 it speaks for the negative class.
        groups: Accuracy of the four cells, and gaps.
    """

    outcome: Outcome
    overall: MetricValue
    clean: MetricValue
    aligned: MetricValue
    ood: MetricValue
    both: MetricValue
    drop: MetricValue
    groups: GroupMetrics


def audit_trained_attribute(
    subject: Subject,
    images: Dataset,
    attribute: BinaryAttribute,
    *,
    positive: str | None = None,
    threshold: float = 0.5,
    reporter: Reporter | None = None,
) -> TrainedAttributeAudit:
    """Score every image once, and compare the cells of class and attribute.

    Args:
        subject: From ``subject_of``.
        images: Labelled images that the model has not learned from; their classes are among those of the subject.
        attribute: Who has it, and of whom that is known; other images are left out.
        positive: Class that is told from all others; by default the last one.
        threshold: Probability of the positive class from which on an image is decided positive.
        reporter: Reporter of progress.

    Raises:
        DataError: Images have several labels, a class that the model does not know, or a cell has no image.

    Cost: one pass over the images.

    Source: A(P0, N1) and A(P1, N0) are the cross-group areas of Borkan, Dixon, Sorensen, Thain and Vasserman, Nuanced Metrics for
    Measuring Unintended Bias, 2019; half their difference is this project's.
    """
    known = images.take(np.flatnonzero(attribute.known))
    flags = attribute.flags[attribute.known].astype(bool)
    is_positive, column = positives_of(subject, known, positive)
    scores = subject.probabilities(known, reporter or Reporter(quiet=True))[:, column]
    labels, patients = is_positive.astype(np.int64), known.groups
    # named where a cell is empty
    attribute_scores(scores, labels, flags.astype(np.int64), in_words=attribute.in_words)
    aligned, against = np.where(is_positive, flags, ~flags), np.where(is_positive, ~flags, flags)

    def area(rows: np.ndarray) -> MetricValue:
        return auc(scores[rows], labels[rows], None if patients is None else patients[rows])

    overall = auc(scores, labels, patients)
    drop = auc_combination([(0.5, scores), (-0.5, scores)], labels, patients, among=[aligned, against])
    return TrainedAttributeAudit(
        outcome=_outcome(overall, drop),
        overall=overall,
        clean=area(~flags),
        aligned=area(aligned),
        ood=area(against),
        both=area(flags),
        drop=drop,
        groups=group_metrics(scores, labels, flags.astype(np.int64), threshold=threshold, groups=patients),
    )


def _outcome(overall: MetricValue, drop: MetricValue) -> Outcome:
    if overall.value < LEAST_AUC:
        return "untrained"
    if drop.low is None or drop.high is None:
        return "undecided"
    if (drop.low > 0 or drop.high < 0) and abs(drop.value) > LARGEST_DROP:
        return "sensitive"
    return "passes" if drop.low > -LARGEST_DROP and drop.high < LARGEST_DROP else "undecided"


Features = Float[np.ndarray, "num_images num_features"]


class AttributeTurn(NamedTuple):
    """One model: which images train it and select for it.

    Attributes:
        fold: Number of the fold.
        share: p that was asked for.
        train: Row numbers of the images that train.
        val: Row numbers of those that select.
        realised: Share of the training positives that have the attribute.
    """

    fold: int
    share: float
    train: RowNumbers
    val: RowNumbers
    realised: float


class AttributeDesign(NamedTuple):
    """An attribute, and which images are taken for it at each share.

    Attributes:
        name: As it was written.
        attribute: Who has it, and of whom that is known.
        turns: One per fold and share.
        test: Row numbers of the test images of which it is known.
        tested: The same images.
    """

    name: str
    attribute: BinaryAttribute
    turns: tuple[AttributeTurn, ...]
    test: RowNumbers
    tested: AuditedImages


def design_attribute(
    name: str, attribute: BinaryAttribute, rows: AuditRows, shares: Sequence[float], *, seed: int = 0
) -> AttributeDesign:
    """Choose images for each fold and share: a share of the training positives has the attribute, and no negative.

    Args:
        name: The attribute as it was written.
        attribute: Who has it, and of whom that is known.
        rows: What each image is for; patients are in one part.
        shares: p, shares of the training positives that have it.
        seed: Random seed of the draws.

    Raises:
        DataError: A cell of class and attribute has too few images in a part: it is named, with wanted and available.

    Source: thesis, chapter 4; the patients of the parts are apart before cells are filled.
    """
    test, turns, num_test = rows.test[attribute.known[rows.test]], list[AttributeTurn](), 0
    for fold in rows.folds:
        train, val = (_protocol(rows, attribute, part, shares, seed) for part in (fold.train, fold.val))
        num_test = train.num_test
        for share, of_train, of_val in zip(shares, train.draws, val.draws, strict=True):
            turns.append(AttributeTurn(fold.number, share, of_train.dev, of_val.dev, of_train.dev_share))
    groups, identities = rows.dataset.groups, rows.identities
    tested = AuditedImages(
        rows.is_positive[test],
        None if groups is None else groups[test],
        [identities[row] for row in test.tolist()],
        attribute.flags[test].astype(bool),
        num_test,
    )
    return AttributeDesign(name, attribute, tuple(turns), test, tested)


def sweep_attribute(
    features: Features,
    rows: AuditRows,
    design: AttributeDesign,
    mitigation: Mitigation,
    *,
    seed: int = 0,
    told: Callable[[], object] = lambda: None,
) -> list[FoldScores]:
    """A classifier on frozen features for each fold and share.

    Args:
        features: (n, d) features of all images.
        rows: What each image is for.
        design: Images that are taken.
        mitigation: What is fitted.
        seed: Random seed of the fits.
        told: Called after each model.

    Raises:
        UsageError: The mitigation cannot tell the attribute from the class on these rows.

    Cost: one logistic regression per fold and share.
    """
    scores: list[FoldScores] = []
    flags = design.attribute.flags
    tested_features = np.asarray(features[design.test], dtype=np.float64)
    for turn in design.turns:
        train, val = (_grouped(features, rows, flags, numbers) for numbers in (turn.train, turn.val))
        fitted = mitigation.fit(train, val, seed=seed)
        threshold = best_threshold(fitted.probabilities(val.features), val.labels)
        probabilities = fitted.probabilities(tested_features)
        decided = fitted.decide(tested_features, flags[design.test].astype(np.int64))
        scores.append(scores_of_turn(turn, probabilities, decided, probabilities >= threshold))
        told()
    return scores


def scores_of_turn(
    turn: AttributeTurn, probabilities: Probabilities, decided: Flags, decided_by_val: Flags, best_epoch: int | None = None
) -> FoldScores:
    """What one model says of the test images, which have the attribute or not, and are seen once."""
    return FoldScores(
        fold=turn.fold,
        share=turn.share,
        realised=turn.realised,
        clean=probabilities,
        edited=probabilities,
        decided=np.stack([decided, decided]),
        decided_by_val=np.stack([decided_by_val, decided_by_val]),
        best_epoch=best_epoch,
    )


def _protocol(
    rows: AuditRows, attribute: BinaryAttribute, part: np.ndarray, shares: Sequence[float], seed: int
) -> AttributeProtocol:
    """Cells of one part, beside those of the test rows; row numbers are those of the data."""
    both = np.sort(np.r_[part, rows.test])
    groups, identities = rows.dataset.groups, rows.identities
    protocol = draw_protocol(
        rows.is_positive[both].astype(np.int64),
        attribute.flags[both].astype(np.int64),
        both if groups is None else groups[both],  # copies across parts are found by the checks of the data
        shares=shares,
        identities=[identities[row] for row in both.tolist()],
        is_test=np.isin(both, rows.test),
        known=attribute.known[both],
        in_words=attribute.in_words,
        seed=seed,
    )
    return protocol._replace(draws=tuple(draw._replace(dev=both[draw.dev], iid=both[draw.iid]) for draw in protocol.draws))


def _grouped(features: Features, rows: AuditRows, flags: np.ndarray, numbers: RowNumbers) -> GroupedRows:
    return GroupedRows(
        np.asarray(features[numbers], dtype=np.float64),
        rows.is_positive[numbers].astype(np.int64),
        flags[numbers].astype(np.int64),
        None if rows.dataset.groups is None else rows.dataset.groups[numbers],
    )
