"""Which spatial frequencies a network looks at: the spectrum of the gradient of its loss by the image."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from crossgraft.edit.spectrum import normalized_psd, radial_psd
from crossgraft.errors import DataError, UsageError
from crossgraft.features.input_gradients import input_gradients
from crossgraft.models import Backbone

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
