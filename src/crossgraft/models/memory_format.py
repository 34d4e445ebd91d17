"""The order in which numbers of images lie in memory while a network is trained."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import Tensor, nn

from crossgraft.models.classifier import Classifier
from crossgraft.models.modes import modes_kept

_FEWEST_CONVOLUTIONS = 2
"""One alone cuts an image into the tokens of a transformer, which gains nothing."""


@contextmanager
def channels_last(classifier: Classifier) -> Generator[None]:
    """As ``put_channels_last`` inside the block; after it weights lie as before.

    So a trained network says bit for bit what it says when it has been saved and loaded.
    """
    is_put = put_channels_last(classifier)
    try:
        yield
    finally:
        if is_put:
            _lay_out(classifier, torch.contiguous_format)


def put_channels_last(classifier: Classifier) -> bool:
    """Let the channels of a pixel lie beside each other, where that makes training faster; True if so.

    A CPU convolves float32 in that order in 60 to 95 % of the time (``benchmarks/training_step.py``). The order decides how sums
    are rounded, and nothing else. A network that does not run in it, because its code asks for a view that needs the usual one,
    keeps that.

    Cost: one forward pass of one image, and a copy of the weights.
    """
    if not _gains(classifier):
        return False
    _lay_out(classifier, torch.channels_last)
    if _runs(classifier):
        return True
    _lay_out(classifier, torch.contiguous_format)
    return False


def _gains(classifier: Classifier) -> bool:
    weights = [layer.weight for layer in classifier.modules() if isinstance(layer, nn.Conv2d)]
    return len(weights) >= _FEWEST_CONVOLUTIONS and all(
        weight.device.type == "cpu" and weight.dtype == torch.float32 and weight.is_contiguous() for weight in weights
    )


def _lay_out(classifier: Classifier, order: torch.memory_format) -> None:
    for tensor in chain(classifier.parameters(), classifier.buffers()):
        if tensor.ndim == 4:
            # a copy, because the strides of a convolution of one pixel fit both orders, and decide which one is used
            tensor.data = tensor.detach().clone(memory_format=order)


def _runs(classifier: Classifier) -> bool:
    shape = classifier.preprocessing
    image = torch.zeros(1, shape.channels, shape.height_pixels, shape.width_pixels)
    try:
        with torch.no_grad(), modes_kept(classifier):
            said: Tensor = classifier.eval()(image)
    except RuntimeError:
        return False
    return said.shape[0] == 1
