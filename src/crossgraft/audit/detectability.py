"""Whether an edit reaches a network at all: a probe that tells edited images from clean ones by their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crossgraft.audit.confounded import AuditFold, AuditRows, Mask, Unit
from crossgraft.audit.fold_scores import FoldScores
from crossgraft.audit.group_metrics import best_threshold
from crossgraft.audit.mitigation import GroupedRows, Mitigation
from crossgraft.errors import DataError
from crossgraft.metrics import MetricValue, auc
from crossgraft.types import Groups

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
    scores: list[FoldScores] = []
    for fold in rows.folds:
        for share in shares:
            carrying = rows.carriers(fold, share, negatives=negatives, unit=unit, seed=seed)
            scores.append(_measure(clean, edited, rows, fold, share, carrying, mitigation, seed))
            told()
    return scores


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


LEAST_DETECTABILITY = 0.6
"""AUC of the probe below which nothing can be said of a network that ignores the edit: it may not even arrive."""
NUM_FOLDS = 5


class Detectability(NamedTuple):
    """How well edited images can be told from clean ones.

    Attributes:
        auc: Area under the ROC curve of the probe, on images that it was not fitted to.
        is_detectable: Whether it reaches ``LEAST_DETECTABILITY``; where not, an audit is not assessable.
    """

    auc: MetricValue
    is_detectable: bool


def detectability(
    clean: Float[np.ndarray, "num_images num_features"],
    edited: Float[np.ndarray, "num_images num_features"],
    groups: Groups | None = None,
) -> Detectability:
    """AUC of logistic regression that tells the features of edited images from those of the same images without the edit.

    Cross-validated in five folds; both versions of an image, and all images of a patient, are in the same one.

    Args:
        clean: (n, d) features of the images as they are.
        edited: (n, d) features of the same images with the edit.
        groups: Patient of each image; None takes the images as independent.

    Raises:
        DataError: Shapes differ, values are not finite, or there are fewer than five images or patients.

    Cost: five logistic regressions on 2n features.
    """
    before, after = np.asarray(clean, dtype=np.float64), np.asarray(edited, dtype=np.float64)
    if before.shape != after.shape or before.ndim != 2:
        raise DataError(f"Clean and edited features must be of the same images, got {before.shape} and {after.shape}.")
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise DataError("Features have values that are NaN or infinite.")
    units = np.arange(len(before)) if groups is None else np.unique(groups, return_inverse=True)[1]
    if len(units) != len(before):
        raise DataError(f"There are {len(before)} images and {len(units)} groups; they must match.")
    if len(np.unique(units)) < NUM_FOLDS:
        what = "images" if groups is None else "groups"
        raise DataError(f"A probe needs at least {NUM_FOLDS} {what}, and there are {len(np.unique(units))}.")
    rows, labels, of_unit = np.r_[before, after], np.repeat([0, 1], len(before)), np.r_[units, units]
    scores = np.empty(len(rows))
    for train, test in GroupKFold(NUM_FOLDS).split(rows, labels, of_unit):
        probe = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        answers = probe.fit(rows[train], labels[train]).decision_function(rows[test])
        scores[test] = answers - answers.mean()  # probes of other folds have other offsets
    area = auc(scores, labels, of_unit)
    return Detectability(area, area.value >= LEAST_DETECTABILITY)
