"""Heads that are fitted on the network that a model started from: what a sound model of these images does with an artefact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from torch import Tensor

from crossgraft.audit.mitigation import FittedScorer, GroupedRows
from crossgraft.audit.mitigation._logistic import logistic_scorer
from crossgraft.data.rows import ImageRows
from crossgraft.data.splits import k_folds
from crossgraft.errors import DataError
from crossgraft.features.batches import BatchLoader
from crossgraft.features.passes import collect, run_pass
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.seeding import generator
from crossgraft.types import Groups

NUM_HEADS = 20
"""Heads, each fitted to another draw of patients with replacement."""
PENALTIES = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
"""C of the logistic regressions; the one whose head answers most like the model on images without the artefact is taken."""
NUM_FOLDS = 5
LEAST_IMAGES = 10
"""Images of each class that a head is fitted to, at least."""
_BATCH = 64

Features = Float[np.ndarray, "num_images num_features"]
Logits = Float64[np.ndarray, "num_heads num_images"]


class FittingRows(NamedTuple):
    """Images without the artefact that heads are fitted to.

    Attributes:
        features: (n, d) of the starting network.
        is_positive: (n,).
        groups: Patient of each image; None takes the images as independent.
    """

    features: Features
    is_positive: np.ndarray
    groups: Groups | None

    def take(self, rows: np.ndarray) -> FittingRows:
        """Some of the images, in this order."""
        groups = None if self.groups is None else self.groups[rows]
        return FittingRows(self.features[rows], self.is_positive[rows], groups)

    @property
    def are_enough(self) -> bool:
        """Whether there are ``LEAST_IMAGES`` of each class."""
        number = int(self.is_positive.sum())
        return min(number, len(self.is_positive) - number) >= LEAST_IMAGES


@dataclass(frozen=True, eq=False)
class StartHeads:
    """Heads and the images that each of them is asked about.

    Attributes:
        parts: Per head, pairs of a scorer and the numbers of the images that it did not see in its fit.
    """

    parts: tuple[tuple[tuple[FittedScorer, np.ndarray], ...], ...]

    def logits(self, features: Features) -> Logits:
        """(heads, n) of the audited images, as they are or edited, in their order."""
        found = np.empty((len(self.parts), len(features)))
        for own, parts in zip(found, self.parts, strict=True):
            for scorer, rows in parts:
                own[rows] = scorer.logits(features[rows])
        return found


def fit_heads(
    rows: FittingRows | None, audited: FittingRows, answers: Float64[np.ndarray, " num_images"], *, seed: int = 0
) -> StartHeads:
    """Heads on the starting network, as smooth as the one that answers most like the model on images without the artefact.

    Args:
        rows: Images without the artefact that the audited ones are not among; None: each head is fitted to the audited images of
            the other folds, by patient.
        audited: The audited images as they are.
        answers: (n,) logits of the model for the audited images as they are.
        seed: Random seed of folds and draws.

    Raises:
        DataError: There are fewer than ``LEAST_IMAGES`` of a class, or fewer than ``NUM_FOLDS`` patients of one.

    Cost: ``NUM_HEADS`` logistic regressions and one for each penalty; over folds ``NUM_FOLDS`` times as many.
    """
    everyone = np.arange(len(audited.features))
    parts = [(rows, everyone)] if rows is not None else _folds(audited, seed)
    for fitted, _ in parts:
        _refuse_few(fitted)

    def agreement(penalty: float) -> float:
        own = StartHeads((tuple((_fit(fitted, penalty, None), asked) for fitted, asked in parts),))
        return float(np.corrcoef(own.logits(audited.features)[0], answers)[0, 1])

    penalty = max(PENALTIES, key=agreement)
    return StartHeads(
        tuple(
            tuple(
                (_fit(fitted, penalty, generator(seed, "start head", number, place)), asked)
                for place, (fitted, asked) in enumerate(parts)
            )
            for number in range(NUM_HEADS)
        )
    )


def _folds(audited: FittingRows, seed: int) -> list[tuple[FittingRows, np.ndarray]]:
    """Images of the other folds, and those of each fold."""
    folds = k_folds(audited.is_positive.astype(np.int64), audited.groups, num_folds=NUM_FOLDS, seed=seed)
    return [(audited.take(fold.rows("train")), fold.rows("test")) for fold in folds]


def features_of(network: Backbone | Classifier, images: ImageRows, reporter: Reporter) -> Features:
    """(n, d) penultimate features of images, in their order, kept nowhere.

    Cost: one pass over the images.
    """
    title = f"Looking at {len(images)} images with the network that it started from"
    with reporter.stage(title, total=len(images), unit="images") as stage:
        loader = BatchLoader(images, network.preprocessing, [range(len(images))], batch_size=_BATCH, reporter=reporter)
        read: Callable[[Tensor], Tensor]
        if isinstance(network, Classifier):
            classifier = network
            read = lambda batch: classifier.features(batch).float().cpu()  # noqa: E731
            found = run_pass(network, loader, read=read, like=network.head.weight, on_images=stage.advance)
        else:
            backbone = network
            read = lambda batch: backbone(batch).features.float().cpu()  # noqa: E731
            found = run_pass(network, loader, read=read, on_images=stage.advance)
        return collect(found).numpy()


def _fit(rows: FittingRows, penalty: float, rng: np.random.Generator | None) -> FittedScorer:
    """Logistic regression on all images, or on patients that are drawn with replacement until both classes are there."""
    drawn = np.arange(len(rows.features))
    if rng is not None:
        unit = drawn if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
        order = np.argsort(unit, kind="stable")
        members = np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)
        while True:
            drawn = np.concatenate([members[each] for each in rng.integers(0, len(members), len(members))])
            if 0 < rows.is_positive[drawn].sum() < len(drawn):
                break
    features, labels = rows.features[drawn].astype(np.float64), rows.is_positive[drawn].astype(np.int64)
    return logistic_scorer(GroupedRows(features, labels, np.zeros_like(labels)), inverse_penalty=penalty)


def _refuse_few(rows: FittingRows) -> None:
    if not rows.are_enough:
        number = int(rows.is_positive.sum())
        raise DataError(
            f"Heads on the starting network need {LEAST_IMAGES} images of each class without the artefact; there are {number} "
            f"positive and {len(rows.is_positive) - number} negative ones."
        )
