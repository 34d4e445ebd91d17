"""Heads that are fitted on the network that a model started from: what a sound model of these images does with an artefact."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from crossgraft.audit.mitigation import FittedScorer, GroupedRows
from crossgraft.audit.mitigation._logistic import logistic_scorer
from crossgraft.data.rows import ImageRows
from crossgraft.errors import DataError
from crossgraft.features.batches import BatchLoader
from crossgraft.features.passes import collect, run_pass
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.seeding import generator
from crossgraft.types import Groups

NUM_HEADS = 20
"""Heads, each fitted to another draw of patients."""
SHARE_OF_HEAD = 0.8
"""Patients of a draw, without replacement, where the model itself is a head on the starting network; else as many as there are,
with replacement."""
PENALTIES = (10.0, 1.0, 0.1, 0.01, 0.001, 0.0001)
"""C of the logistic regressions; the one whose head answers most like the model on images without the artefact is taken."""
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


@dataclass(frozen=True, eq=False)
class StartHeads:
    """Heads on one network.

    Attributes:
        scorers: One per head.
    """

    scorers: tuple[FittedScorer, ...]

    def logits(self, features: Features) -> Logits:
        """(heads, n) of the audited images, as they are or edited, in their order."""
        return np.stack([scorer.logits(features) for scorer in self.scorers])


def fit_heads(
    rows: FittingRows,
    audited: Features,
    answers: Float64[np.ndarray, " num_images"],
    *,
    is_head: bool = False,
    seed: int = 0,
) -> StartHeads:
    """Heads on the starting network, as smooth as the one that answers most like the model on images without the artefact.

    Args:
        rows: Images without the artefact that the audited ones are not among.
        audited: (n, d) of the audited images as they are.
        answers: (n,) logits of the model for the audited images as they are.
        is_head: Whether the model is a head on the starting network, which learned from the same images: it differs less from
            these heads than a network that was trained whole.
        seed: Random seed of the draws.

    Raises:
        DataError: There are fewer than ``LEAST_IMAGES`` of a class.

    Cost: ``NUM_HEADS`` logistic regressions and one for each penalty.
    """
    number = int(rows.is_positive.sum())
    if min(number, len(rows.is_positive) - number) < LEAST_IMAGES:
        raise DataError(
            f"Heads on the starting network need {LEAST_IMAGES} images of each class without the artefact; there are {number} "
            f"positive and {len(rows.is_positive) - number} negative ones."
        )

    # of all images: what is hardly ever lit in a draw would be divided by next to nothing, and a letter that lights it explode
    scaler = StandardScaler().fit(rows.features.astype(np.float64))

    def fit(of_draw: FittingRows, penalty: float) -> FittedScorer:
        labels = of_draw.is_positive.astype(np.int64)
        grouped = GroupedRows(of_draw.features.astype(np.float64), labels, np.zeros_like(labels))
        return logistic_scorer(grouped, inverse_penalty=penalty, scaler=scaler)

    def agreement(penalty: float) -> float:
        return float(np.corrcoef(fit(rows, penalty).logits(audited), answers)[0, 1])

    penalty = max(PENALTIES, key=agreement)
    draws = (_draw(rows, generator(seed, "start head", each, 0), is_head=is_head) for each in range(NUM_HEADS))
    return StartHeads(tuple(fit(rows.take(each), penalty) for each in draws))


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


def _draw(rows: FittingRows, rng: np.random.Generator, *, is_head: bool) -> np.ndarray:
    """Rows of patients that are drawn until both classes are there."""
    unit = np.arange(len(rows.features)) if rows.groups is None else np.unique(rows.groups, return_inverse=True)[1]
    order = np.argsort(unit, kind="stable")
    members = np.split(order, np.flatnonzero(np.diff(unit[order])) + 1)
    number = math.ceil(SHARE_OF_HEAD * len(members)) if is_head else len(members)
    while True:
        drawn = np.concatenate([members[each] for each in rng.choice(len(members), number, replace=not is_head)])
        if 0 < rows.is_positive[drawn].sum() < len(drawn):
            return drawn
