"""Loss and similarity along the straight line between two networks (Proposition 8 of RepSim)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32, Float64
from torch import Tensor

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.features.passes import run_pass
from crossgraft.geometry._inputs import BATCH_SIZE, AnyImages, NetworkImages, weight_of
from crossgraft.geometry._losses import ImageTargets, finite_loss, targets_of, usual_loss
from crossgraft.geometry.batch_norm import moved_batch_norms
from crossgraft.geometry.weight_interpolation import BatchNormRule, interpolate
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.similarity import both_linear_cka

ALPHAS = tuple(step / 10 for step in range(11))


@dataclass(frozen=True)
class PathPoint:
    """One network on the line.

    Attributes:
        alpha: 0 at the start, 1 at the end.
        loss: Mean over images.
        cka: Linear CKA of its features to those of the start; None where they do not vary.
        cka_debiased: The debiased estimate.
    """

    alpha: float
    loss: float
    cka: float | None
    cka_debiased: float | None


@dataclass(frozen=True)
class InterpolationPath:
    """Networks on a line, in the order of alpha, and what was done to statistics of BatchNorm between the ends.

    Attributes:
        points: The networks that were measured.
        batch_norm: Rule for BatchNorm between the ends.
        num_batch_norms: Layers with other statistics at the two ends.
        num_images: Images that loss and similarity are of.
    """

    points: tuple[PathPoint, ...]
    batch_norm: BatchNormRule
    num_batch_norms: int
    num_images: int

    @property
    def between(self) -> dict[float, bool]:
        """Alpha strictly inside → whether both loss and CKA lie strictly between those of the ends, as Proposition 8 has it.

        The proposition promises some path with such networks, not that they lie on the straight line.
        """
        first, last = self.points[0], self.points[-1]
        return {
            point.alpha: _is_between(point.loss, first.loss, last.loss) and _is_between(point.cka, first.cka, last.cka)
            for point in self.points
            if 0 < point.alpha < 1
        }


def interpolation_path(
    start: Classifier,
    end: Classifier,
    images: AnyImages,
    targets: ImageTargets | None = None,
    *,
    alphas: Sequence[float | int] = ALPHAS,
    batch_norm: BatchNormRule = "estimate",
    train_images: AnyImages | None = None,
    batch_size: int = BATCH_SIZE,
    reporter: Reporter | None = None,
) -> InterpolationPath:
    """Measure loss and CKA to the start at each α of (1 − α)·start + α·end.

    Statistics of BatchNorm belong to features that neither end has: see ``interpolate``. A network whose statistics were
    estimated is no neighbour of an end that has its own, so that loss and similarity may jump behind α = 0 and before 1.

    Args:
        start: Usually the pretrained body under the head of a linear probe.
        end: The fine-tuned network, built alike.
        images: Held-out images, prepared or as a data set.
        targets: As ``sharpness`` takes them.
        alphas: In [0, 1]; both ends are added.
        batch_norm: ``estimate`` or ``mix``.
        train_images: Training images; needed where statistics are estimated.
        batch_size: Images at once.
        reporter: Reporter of progress.

    Raises:
        UsageError: The networks are not built alike, an α is outside [0, 1], or training images are needed and were not given.
        DataError: Too few images, or a loss that is not finite.

    Cost: a forward pass per image and α, and two of the training images where statistics are estimated.

    Source: RepSim, Proposition 8; eq. 1 of WiSE-FT (Wortsman et al., CVPR 2022).
    """
    chosen = sorted({0.0, 1.0, *(float(alpha) for alpha in alphas)})
    if chosen[0] < 0 or chosen[-1] > 1:
        raise UsageError(
            f"Every alpha lies between 0 (the start) and 1 (the end); given: {chosen[0]:g} to {chosen[-1]:g}."
        )
    prepared = NetworkImages(images, end)
    labels = targets_of(images, targets, len(prepared))
    training = None if train_images is None else NetworkImages(train_images, end)
    points: list[PathPoint] = []
    reference: np.ndarray | None = None
    stages = reporter or Reporter(quiet=True)
    with stages.stage("Measuring networks between two", total=len(chosen), unit="networks") as stage:
        for alpha in chosen:
            network = interpolate(start, end, alpha, images=training, batch_norm=batch_norm)
            features, loss = features_and_loss(network, prepared, labels, batch_size=batch_size)
            reference = features if reference is None else reference
            points.append(PathPoint(alpha, loss, *_similarity(reference, features)))
            stage.advance()
    moved = moved_batch_norms(start, end)
    return InterpolationPath(tuple(points), batch_norm, len(moved), len(prepared))


def features_and_loss(
    network: Classifier, images: NetworkImages, targets: Tensor, *, batch_size: int = BATCH_SIZE
) -> tuple[Float32[np.ndarray, "num_images num_features"], float]:
    """Penultimate features, and the mean of the usual loss, from one pass."""
    read = network.features_and_logits
    said = list(run_pass(network, images.batches(batch_size), read=read, like=weight_of(network), full_precision=True))
    logits = torch.cat([each.logits.float().cpu() for each in said])
    loss: Float64[np.ndarray, " num_images"] = usual_loss(targets)(logits, targets).double().numpy()
    return torch.cat([each.features.float().cpu() for each in said]).numpy(), finite_loss(float(loss.mean()))


def _similarity(reference: np.ndarray, features: np.ndarray) -> tuple[float | None, float | None]:
    try:
        found = both_linear_cka(reference, features)
    except NotApplicable:  # features that are the same for all images are shown as a gap
        return None, None
    return found.biased, found.debiased


def _is_between(value: float | None, one: float | None, other: float | None) -> bool:
    return value is not None and one is not None and other is not None and min(one, other) < value < max(one, other)
