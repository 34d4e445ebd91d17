"""Quick mode: features are computed once without and once with the artefact, and a share only changes which rows are taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from crossgraft.audit.fold_scores import FoldScores
from crossgraft.audit.mitigation import GroupedRows, Mitigation
from crossgraft.audit.rows import AuditFold, AuditRows, Mask, Unit
from crossgraft.audit.thresholds import best_threshold
from crossgraft.errors import DataError

Features = Float[np.ndarray, "num_images num_features"]


def sweep_features(
    clean: Features,
    edited: Features,
    rows: AuditRows,
    shares: Sequence[float],
    mitigation: Mitigation,
    *,
    negatives: float = 0.0,
    unit: Unit = "image",
    seed: int = 0,
    told: Callable[[], object] = lambda: None,
) -> list[FoldScores]:
    """A classifier on frozen features for each fold and share, and what it says of the test images.

    Args:
        clean: (n, d) features of all images as they are.
        edited: (n, d) of the same images with the artefact.
        rows: What each image is for.
        shares: p_art, shares of the positives of train and val that carry it.
        mitigation: What is fitted; ``erm`` is plain logistic regression.
        negatives: Share of the negatives of train and val that carry it.
        unit: What is drawn: images, or patients.
        seed: Random seed of draws and fits.
        told: Called after each model.

    Raises:
        DataError: There are features of other images.
        UsageError: The mitigation cannot tell the artefact from the class on these rows.

    Cost: one logistic regression per fold and share, on features that are there.
    """
    if clean.shape != edited.shape or len(clean) != len(rows.dataset):
        raise DataError(
            f"Features are of {clean.shape} and {edited.shape}, and there are {len(rows.dataset)} images: all of them are "
            "needed without and with the artefact."
        )
    found: list[FoldScores] = []
    for fold in rows.folds:
        for share in shares:
            carrying = rows.carriers(fold, share, negatives=negatives, unit=unit, seed=seed)
            found.append(_measure(clean, edited, rows, fold, share, carrying, mitigation, seed))
            told()
    return found


def realised_share(carrying: Mask, is_positive: Mask, train: np.ndarray) -> float:
    """Share of the training positives that carry the artefact: 3 of 31 is not 0.1."""
    return float(carrying[train][is_positive[train]].mean())


def _measure(
    clean: Features,
    edited: Features,
    rows: AuditRows,
    fold: AuditFold,
    share: float,
    carrying: Mask,
    mitigation: Mitigation,
    seed: int,
) -> FoldScores:
    def part(numbers: np.ndarray) -> GroupedRows:
        mixed = np.where(carrying[numbers, None], edited[numbers], clean[numbers])
        flags = carrying[numbers].astype(np.int64)
        patients = None if rows.dataset.groups is None else rows.dataset.groups[numbers]
        return GroupedRows(mixed.astype(np.float64), rows.is_positive[numbers].astype(np.int64), flags, patients)

    train, val = part(fold.train), part(fold.val)
    fitted = mitigation.fit(train, val, seed=seed)
    threshold = best_threshold(fitted.probabilities(val.features), val.labels)
    sides = [features[rows.test].astype(np.float64) for features in (clean, edited)]
    scores = [fitted.probabilities(side) for side in sides]
    decided = [fitted.decide(side, np.full(len(side), flag)) for flag, side in enumerate(sides)]
    return FoldScores(
        fold=fold.number,
        share=share,
        realised=realised_share(carrying, rows.is_positive, fold.train),
        clean=scores[0],
        edited=scores[1],
        decided=np.stack(decided),
        decided_by_val=np.stack([each >= threshold for each in scores]),
    )
