"""Quick mode with an attribute as confounder: nothing is painted, a share only changes which images are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.audit.attributes import AttributeProtocol, BinaryAttribute, draw_protocol
from crossgraft.audit.fold_scores import AuditedImages, FoldScores
from crossgraft.audit.mitigation import GroupedRows, Mitigation
from crossgraft.audit.rows import AuditRows
from crossgraft.audit.thresholds import best_threshold

Features = Float[np.ndarray, "num_images num_features"]


class AttributeSweep(NamedTuple):
    """What classifiers say of the test images, whose attribute is known.

    Attributes:
        scores: Every fold at every share.
        tested: The test images.
        num_train: Training images of each class, the same at every share.
    """

    scores: list[FoldScores]
    tested: AuditedImages
    num_train: int


def sweep_attribute(
    features: Features,
    rows: AuditRows,
    attribute: BinaryAttribute,
    shares: Sequence[float],
    mitigation: Mitigation,
    *,
    seed: int = 0,
    told: Callable[[], object] = lambda: None,
) -> AttributeSweep:
    """A classifier for each fold and share: a share of its training positives has the attribute, and no negative.

    Args:
        features: (n, d) features of all images.
        rows: What each image is for; patients are in one part.
        attribute: Who has it, and of whom that is known.
        shares: p, shares of the training positives that have it.
        mitigation: What is fitted.
        seed: Random seed of draws and fits.
        told: Called after each model.

    Raises:
        DataError: A cell of class and attribute has too few images in a part: it is named, with wanted and available.
        UsageError: The mitigation cannot tell the attribute from the class on these rows.

    Cost: one logistic regression per fold and share.

    Source: thesis, chapter 4; the patients of the parts are apart before cells are filled.
    """
    test = rows.test[attribute.known[rows.test]]
    scores: list[FoldScores] = []
    num_train = num_test = 0
    for fold in rows.folds:
        parts = [_protocol(rows, attribute, part, shares, seed) for part in (fold.train, fold.val)]
        num_train, num_test = parts[0].num_dev, parts[0].num_test
        for place, share in enumerate(shares):
            taken = [part.draws[place].dev for part in parts]
            train, val = (_grouped(features, rows, attribute, numbers) for numbers in taken)
            fitted = mitigation.fit(train, val, seed=seed)
            threshold = best_threshold(fitted.probabilities(val.features), val.labels)
            tested_features = np.asarray(features[test], dtype=np.float64)
            said = fitted.probabilities(tested_features)
            decided = fitted.decide(tested_features, attribute.flags[test].astype(np.int64))
            scores.append(
                FoldScores(
                    fold=fold.number,
                    share=share,
                    realised=parts[0].draws[place].dev_share,
                    clean=said,
                    edited=said,
                    decided=np.stack([decided, decided]),
                    decided_by_val=np.stack([said >= threshold] * 2),
                )
            )
            told()
    groups = None if rows.dataset.groups is None else rows.dataset.groups[test]
    identities = rows.identities
    tested = AuditedImages(
        rows.is_positive[test],
        groups,
        [identities[row] for row in test.tolist()],
        attribute.flags[test].astype(bool),
        num_test,
    )
    return AttributeSweep(scores, tested, num_train)


def _protocol(
    rows: AuditRows, attribute: BinaryAttribute, part: np.ndarray, shares: Sequence[float], seed: int
) -> AttributeProtocol:
    """Cells of one part, beside those of the test rows; row numbers are those of the data."""
    both = np.sort(np.r_[part, rows.test])
    groups, identities = rows.dataset.groups, rows.identities
    found = draw_protocol(
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
    return found._replace(draws=tuple(draw._replace(dev=both[draw.dev], iid=both[draw.iid]) for draw in found.draws))


def _grouped(features: Features, rows: AuditRows, attribute: BinaryAttribute, numbers: np.ndarray) -> GroupedRows:
    return GroupedRows(
        np.asarray(features[numbers], dtype=np.float64),
        rows.is_positive[numbers].astype(np.int64),
        attribute.flags[numbers].astype(np.int64),
    )
