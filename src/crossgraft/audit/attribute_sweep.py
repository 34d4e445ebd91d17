"""An attribute as confounder: nothing is painted, a share only changes which images are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from crossgraft.audit.attributes import AttributeProtocol, BinaryAttribute, draw_protocol
from crossgraft.audit.fold_scores import AuditedImages, Flags, FoldScores, Probabilities
from crossgraft.audit.mitigation import GroupedRows, Mitigation
from crossgraft.audit.rows import AuditRows, RowNumbers
from crossgraft.audit.thresholds import best_threshold

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
        said = fitted.probabilities(tested_features)
        decided = fitted.decide(tested_features, flags[design.test].astype(np.int64))
        scores.append(scores_of_turn(turn, said, decided, said >= threshold))
        told()
    return scores


def scores_of_turn(
    turn: AttributeTurn, said: Probabilities, decided: Flags, decided_by_val: Flags, best_epoch: int | None = None
) -> FoldScores:
    """What one model says of the test images, which have the attribute or not, and are seen once."""
    return FoldScores(
        fold=turn.fold,
        share=turn.share,
        realised=turn.realised,
        clean=said,
        edited=said,
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


def _grouped(features: Features, rows: AuditRows, flags: np.ndarray, numbers: RowNumbers) -> GroupedRows:
    return GroupedRows(
        np.asarray(features[numbers], dtype=np.float64),
        rows.is_positive[numbers].astype(np.int64),
        flags[numbers].astype(np.int64),
        None if rows.dataset.groups is None else rows.dataset.groups[numbers],
    )
