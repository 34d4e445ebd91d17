"""From pixels to the input of a backbone: resize, scale to [0, 1], normalise, stack; the last two once on the whole batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float32, Shaped
from torch import Tensor

from crossgraft.compute import sent
from crossgraft.data.resizing import resize_image, stack_resized
from crossgraft.errors import UsageError
from crossgraft.types import Preprocessing


def prepare_batch(
    images: Sequence[np.ndarray], preprocessing: Preprocessing
) -> Float32[Tensor, "num_images channels height width"]:
    """Make one batch of backbone inputs.

    Args:
        images: (height, width, 1 or 3) each, uint8, uint16 or float32 in [0, 1]; sizes and types may differ.
        preprocessing: Size, resize policy, interpolation, channels, mean and standard deviation.

    Returns:
        (x − mean) / std with x in [0, 1]; grey images are repeated over three channels, colour images become
        luminance where one channel is asked for.

    Raises:
        UsageError: No image.
    """
    if not images:
        raise UsageError("There is no image to prepare: the batch is empty.")
    return prepare_resized([resize_image(image, preprocessing) for image in images], preprocessing)


def prepare_resized(
    images: Sequence[np.ndarray], preprocessing: Preprocessing, *, device: str = "cpu"
) -> Float32[Tensor, "num_images channels height width"]:
    """The rest of ``prepare_batch``, of images from ``resize_image``.

    Args:
        images: At the size of the input.
        preprocessing: Channels, mean and standard deviation.
        device: Where they are normalised; they go there as they are, 8 bits as 8 bits, which is a quarter of the way.
    """
    # A batch of grey images stays grey until it is normalised: a third of the work.
    levels = sent(torch.from_numpy(stack_resized(images)), device).permute(0, 3, 1, 2)
    return normalise_images(levels, preprocessing, full_range=255 if levels.dtype == torch.uint8 else 1)


def normalise_images(
    images: Shaped[Tensor, "num_images samples height width"], preprocessing: Preprocessing, *, full_range: int
) -> Float32[Tensor, "num_images channels height width"]:
    """The second half of ``prepare_batch``: (x / full_range − mean) / std, one channel repeated over three.

    Args:
        images: Channels first, 1 or as many as the input has; white is ``full_range``. They stay as they are.
        preprocessing: Channels, mean and standard deviation.
        full_range: 255 for samples of 8 bits, else 1.
    """
    mean, std = (sent(torch.tensor(of), images.device).view(1, -1, 1, 1) for of in (preprocessing.mean, preprocessing.std))
    shape = (len(images), preprocessing.channels, *images.shape[2:])
    inputs = torch.empty(shape, device=images.device)
    inputs.copy_(images.expand_as(inputs))
    return inputs.mul_(1 / (full_range * std)).sub_(mean / std)
