"""The order in which numbers of images lie in memory while a network is trained, or looks at many images."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from itertools import chain

import torch
from torch import nn

from crossgraft.models.backbone import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.models.taps import modes_kept

_FEWEST_CONVOLUTIONS = 2
"""One alone cuts an image into the tokens of a transformer, which gains nothing."""

Network = Classifier | Backbone


@contextmanager
def channels_last(network: Network, *, kind: str = "cpu") -> Generator[None]:
    """As ``put_channels_last`` inside the block; after it weights lie as before.

    So a trained network says bit for bit what it says when it has been saved and loaded.
    """
    is_put = put_channels_last(network, kind=kind)
    try:
        yield
    finally:
        if is_put:
            _lay_out(_module(network), torch.contiguous_format)


def put_channels_last(network: Network, *, kind: str = "cpu") -> bool:
    """Let the channels of a pixel lie beside each other, where that is faster; True if so.

    Only a network on a device of this ``kind`` is changed, and a backbone that looks in bf16 on a GPU: GPUs want that order for
    convolutions in 16 bits. A CPU trains convolutions of float32 in it in 65 to 95 % of the time
    (``benchmarks/training_step.py``). The order decides how sums are rounded, and nothing else. A network that does not run in
    it, because its code asks for a view that needs the usual one, keeps that.

    Cost: one forward pass of one image, and a copy of the weights.
    """
    module = _module(network)
    if isinstance(network, Backbone) and network.precision == "bf16":
        kind = "cuda"
    if not _gains(module, kind):
        return False
    runs = False
    try:
        _lay_out(module, torch.channels_last)
        runs = _runs(network)
    finally:  # Ctrl-C leaves weights as they were, too
        if not runs:
            _lay_out(module, torch.contiguous_format)
    return runs


def _module(network: Network) -> nn.Module:
    return network.module if isinstance(network, Backbone) else network


def is_convolutional(module: nn.Module) -> bool:
    """Whether a network has more convolutions than the one that cuts an image into tokens."""
    return len(_kernels(module)) >= _FEWEST_CONVOLUTIONS


def _kernels(module: nn.Module) -> list[torch.Tensor]:
    return [layer.weight for layer in module.modules() if isinstance(layer, nn.Conv2d)]


def _gains(module: nn.Module, kind: str) -> bool:
    weights = _kernels(module)
    return len(weights) >= _FEWEST_CONVOLUTIONS and all(
        weight.device.type == kind and weight.dtype == torch.float32 and weight.is_contiguous() for weight in weights
    )


def _lay_out(module: nn.Module, order: torch.memory_format) -> None:
    with torch.inference_mode(mode=False):  # autograd refuses what was made in that mode
        for tensor in chain(module.parameters(), module.buffers()):
            if tensor.ndim == 4:
                # a copy, because the strides of a convolution of one pixel fit both orders, and decide which one is used
                tensor.data = tensor.detach().clone(memory_format=order)


def _runs(network: Network) -> bool:
    shape = network.preprocessing
    weight = next(_module(network).parameters())
    image = weight.new_zeros(1, shape.channels, shape.height_pixels, shape.width_pixels)
    try:
        with torch.no_grad(), modes_kept(_module(network)):
            _module(network).eval()
            network(image)
    except RuntimeError:
        return False
    return True
