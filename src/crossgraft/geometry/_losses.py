"""The loss of a task, image by image."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from crossgraft.data import Dataset
from crossgraft.errors import DataError, UsageError
from crossgraft.geometry._inputs import AnyImages

ImageTargets = Int[np.ndarray, " num_images"] | Int[np.ndarray, "num_images num_labels"]
PerImage = Callable[[Float[Tensor, "batch num_classes"], Tensor], Float[Tensor, " batch"]]
"""Loss of each image, from logits and targets."""


def targets_of(images: AnyImages, targets: ImageTargets | None, num_images: int) -> Tensor:
    """Targets that were given, or those of the data set.

    Raises:
        UsageError: There are none.
        DataError: They are as many as other images.
    """
    given = images.targets if targets is None and isinstance(images, Dataset) else targets
    if given is None:
        raise UsageError("A loss needs the class of each image: targets=.")
    if len(given) != num_images:
        raise DataError(f"There are {num_images} images and {len(given)} targets; they must match.")
    return torch.from_numpy(np.asarray(given))


def usual_loss(targets: Tensor) -> PerImage:
    """Cross-entropy of classes; of labels the binary one, summed over them, as the size of RepSim's Table 2 shows."""
    if targets.ndim == 1:
        return lambda logits, classes: functional.cross_entropy(logits, classes.long(), reduction="none")
    return lambda logits, labels: functional.binary_cross_entropy_with_logits(
        logits, labels.to(logits.dtype), reduction="none"
    ).sum(dim=1)


def finite_loss(loss: float) -> float:
    """``loss``, unless it is NaN or infinite.

    Raises:
        DataError: It is.
    """
    if not math.isfinite(loss):
        raise DataError("The loss is NaN or infinite, so that it says nothing. Check weights and images.")
    return loss
