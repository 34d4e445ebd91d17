"""The learning priority of one network, batch by batch, with the objective that two networks have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor, nn

from crossgraft.audit.learning_priority import SATURATED
from crossgraft.edit.spectrum import normalized_psd, radial_psd
from crossgraft.errors import DataError, UsageError
from crossgraft.features.input_gradients import input_gradients
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.progress.reporter import Stage

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
    network: Backbone | Classifier,
    batches: Iterable[Prepared],
    objective: Objective,
    targets: Outputs | None,
    stage: Stage,
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
            if np.linalg.norm(gradient) >= SATURATED and exceeds_rounding(
                psd, np.abs(gradient).max(), gradient[0].size
            ):
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
