"""Which spatial frequencies a network looks at: the spectrum of the gradient of its loss by the image."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.edit.spectrum import normalized_psd, radial_psd
from crossgraft.errors import DataError, UsageError
from crossgraft.features.passes import input_gradients
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress.reporter import Stage
from crossgraft.types import Preprocessing

Images = Float[Tensor, "num_images channels height width"]
Weighting = Literal["normalized", "raw"]
SATURATED = 1e-12
"""A gradient of a smaller norm is rounding: the network is sure of the image, and says nothing about frequencies."""


class LearningPriority(NamedTuple):
    """Where a network looks.

    Attributes:
        psd: (K,) mean over images of the spectrum of the gradient; ring k is k / M cycles per pixel of the input.
        per_image: (n, K) spectra of the images that count, not normalised.
        num_saturated: Images that were left out, because their gradient is 0.
    """

    psd: Float64[np.ndarray, " rings"]
    per_image: Float64[np.ndarray, "num_counted rings"]
    num_saturated: int


def learning_priority(
    network: nn.Module | Backbone,
    images: Images,
    labels: Int[np.ndarray, " num_images"] | Literal["predicted"] | None = None,
    *,
    weighting: Weighting = "normalized",
    batch_size: int = 32,
) -> LearningPriority:
    """Radial spectrum of X_i = ∂ℓ_i / ∂x_i, ℓ the cross-entropy of image i (section 5.2.2), mean over images.

    Stride-2 convolutions and max-pooling make peaks near the Nyquist frequency: they are part of the network.

    Args:
        network: A classifier that returns logits, or a backbone, whose objective is ½ ‖features‖² instead where no labels are
            given: its head knows other classes.
        images: (n, channels, height, width), prepared for the network.
        labels: (n,) class of each image; ``predicted``: the most probable one.
        weighting: ``normalized``: the spectrum of each image counts alike. ``raw``: images with a large loss count more.
        batch_size: Images at once.

    Raises:
        UsageError: Labels are missing, or an option has no such value.
        DataError: Labels are as many as other images, or all images are saturated.

    Cost: one forward and one backward pass per image, and an FFT of each gradient.

    Source: thesis, section 5.2.2.
    """
    if weighting not in ("normalized", "raw"):
        raise UsageError(f"weighting of a learning priority must be normalized or raw, got {weighting!r}.")
    if isinstance(labels, str) and labels != "predicted":
        raise UsageError(f"labels of a learning priority are classes, or predicted, not {labels!r}.")
    if labels is not None and isinstance(network, Backbone) and network.num_source_classes is None:
        raise UsageError(f"{network.name} has no head, so that labels say nothing of it. Leave them out.")
    if labels is None and not isinstance(network, Backbone):
        raise UsageError("A learning priority needs the class of each image: labels=, or labels='predicted'.")
    if isinstance(labels, np.ndarray) and len(labels) != len(images):
        raise DataError(f"There are {len(images)} images and {len(labels)} labels; they must match.")
    spectra: list[np.ndarray] = []
    saturated = 0
    for gradients in input_gradients(network, images.split(batch_size), _SummedLoss(network, labels)):
        for gradient in gradients.double().cpu().numpy():
            if np.linalg.norm(gradient) < SATURATED:
                saturated += 1
            else:
                spectra.append(radial_psd(np.moveaxis(gradient, 0, 2)))
    if not spectra:
        raise DataError(
            f"The gradients of all {len(images)} images are 0: the network is sure of each of them, or does not depend on them."
        )
    per_image = np.stack(spectra)
    rows = per_image if weighting == "raw" else np.stack([normalized_psd(each) for each in per_image])
    return LearningPriority(rows.mean(axis=0), per_image, saturated)


class _SummedLoss:
    """Sum over the images of a batch; with a mean, gradients would depend on its size."""

    def __init__(self, network: nn.Module | Backbone, labels: np.ndarray | str | None) -> None:
        self.network, self.labels = network, labels

    def __call__(self, images: Tensor, before: int) -> Tensor:
        if isinstance(self.network, Backbone):
            output = self.network.read_out(images)
            if self.labels is None or output.source_logits is None:
                return output.features.square().sum() / 2
            logits = output.source_logits
        else:
            logits = self.network(images)
        if self.labels is None or isinstance(self.labels, str):
            targets = logits.detach().argmax(dim=1)
        else:
            targets = torch.from_numpy(self.labels[before : before + len(images)]).to(logits.device)
        return nn.functional.cross_entropy(logits, targets, reduction="sum")


Objective = Literal["true labels", "predicted labels", "features"]
Outputs = Int[np.ndarray, " num_images"]
_ROUNDING = 16 * float(np.finfo(np.float32).eps)
Prepared = Float[Tensor, "_ channels height width"]  # no name: the last batch is smaller


class NetworkPriority(NamedTuple):
    """Which frequencies one network looks at.

    Attributes:
        objective: What the gradient is of: cross-entropy of the ``true labels`` or of the ``predicted labels``, or ½ ‖features‖².
            Networks with another objective cannot be compared.
        psd: (K,) mean over images of the spectrum of the gradient, each with a sum of 1; None where every image is saturated.
        std: (K,) standard deviation over images.
        num_saturated: Images that are left out, because their gradient is 0, the network being sure of them, or the same at every
            pixel.
    """

    objective: Objective
    psd: Float64[np.ndarray, " rings"] | None
    std: Float64[np.ndarray, " rings"] | None
    num_saturated: int


def network_priority(
    network: Backbone | Classifier, batches: Iterable[Prepared], objective: Objective, targets: Outputs | None, stage: Stage
) -> NetworkPriority:
    """As ``learning_priority``, whose images are all in memory, and of the features of any network.

    Args:
        network: In any mode.
        batches: Prepared images.
        objective: One that fits the network, from ``fitting_objective``.
        targets: (n,) output of the network for the class of each image.
        stage: Where progress is reported.

    Raises:
        DataError: Gradients are NaN or infinite.
    """
    spectra: list[np.ndarray] = []
    saturated = 0
    for gradients in input_gradients(network, batches, _summed_loss(network, objective, targets)):
        for gradient in gradients.double().cpu().numpy():
            if not np.isfinite(gradient).all():
                raise DataError("The network has gradients that are NaN or infinite. Check its weights.")
            psd = radial_psd(np.moveaxis(gradient, 0, 2))
            if np.linalg.norm(gradient) >= SATURATED and exceeds_rounding(psd, np.abs(gradient).max(), gradient[0].size):
                spectra.append(normalized_psd(psd))
            else:
                saturated += 1
        stage.advance(len(gradients))
    if not spectra:
        return NetworkPriority(objective, None, None, saturated)
    return NetworkPriority(objective, np.mean(spectra, axis=0), np.std(spectra, axis=0), saturated)


def exceeds_rounding(psd: Float64[np.ndarray, " rings"], largest: float, num_pixels: int) -> bool:
    """Whether a ring beside that of the mean holds more than the rounding of float32; what does not has no spectrum.

    Args:
        psd: From ``radial_psd``.
        largest: Largest magnitude among the values that were computed with.
        num_pixels: Pixels of the image.
    """
    return bool(psd[1:].max() > 2 * np.pi * _ROUNDING * largest * np.sqrt(num_pixels))


def fitting_objective(network: Backbone | Classifier, asked: Objective | None, targets: Outputs | None) -> Objective:
    """The objective that was asked for, or by default the true labels where the network knows them.

    Raises:
        UsageError: It does not fit the network, or there is no such objective.
    """
    if asked is None:
        return "features" if targets is None else "true labels"
    if asked not in ("true labels", "predicted labels", "features"):
        raise UsageError(f"objective must be true labels, predicted labels or features, got {asked!r}.")
    if isinstance(network, Backbone) and asked != "features":
        raise UsageError(f"{network.name} is a backbone, whose head knows other classes. Ask for objective='features'.")
    if asked == "true labels" and targets is None:
        raise UsageError(
            "The network does not have the classes of these images, one per image. Ask for objective='features', or leave it out."
        )
    return asked


def _summed_loss(
    network: Backbone | Classifier, objective: Objective, targets: Outputs | None
) -> Callable[[Tensor, int], Tensor]:
    """Sum over the images of a batch; with a mean, gradients would depend on its size."""
    if isinstance(network, Backbone):
        return lambda images, _: network.read_out(images).features.square().sum() / 2
    if objective == "features":
        return lambda images, _: network.features(images).square().sum() / 2

    def cross_entropy(images: Tensor, before: int) -> Tensor:
        logits = network(images)
        if objective == "predicted labels" or targets is None:
            wanted = logits.detach().argmax(dim=1)
        else:
            wanted = torch.from_numpy(targets[before : before + len(images)]).to(logits.device)
        return nn.functional.cross_entropy(logits, wanted, reduction="sum")

    return cross_entropy


AT_ONCE = 32
"""Images that are prepared together, and that a network looks at."""
LEAST_SIDE_PIXELS = 6
"""An input of a shorter side has fewer than three rings, of which nothing can be compared."""


def shorter_side(preprocessing: Preprocessing) -> int:
    """Pixels of the shorter side of the input, from which frequencies are counted.

    Raises:
        DataError: It is too small.
    """
    side = min(preprocessing.height_pixels, preprocessing.width_pixels)
    if side < LEAST_SIDE_PIXELS:
        raise DataError(
            f"The input of the network has a side of {side} pixels; frequencies can be compared from {LEAST_SIDE_PIXELS} on."
        )
    return side


def prepared_batches(images: ImageRows, preprocessing: Preprocessing) -> Generator[Prepared]:
    """Batches of ``AT_ONCE`` images; the last one may be smaller."""
    for first in range(0, len(images), AT_ONCE):
        yield prepare_batch([images.read(row) for row in range(first, min(first + AT_ONCE, len(images)))], preprocessing)


def network_inputs(images: ImageRows, preprocessing: Preprocessing) -> Generator[Float64[np.ndarray, "height width channels"]]:
    """Each image as the network gets it."""
    for batch in prepared_batches(images, preprocessing):
        yield from np.moveaxis(batch.double().numpy(), 1, 3)
