"""What an attribute, such as sex or age, does to a model that is trained already: cells of class and attribute compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crossgraft.audit.attributes import BinaryAttribute, attribute_scores
from crossgraft.audit.group_metrics import GroupMetrics, group_metrics
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
