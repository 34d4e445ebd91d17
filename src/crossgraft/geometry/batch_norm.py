"""Means and variances of BatchNorm: which layers hold some, and new ones estimated on images."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeGuard, TypeVar

import torch
from torch import nn

from crossgraft.features.passes import run_pass
from crossgraft.geometry._inputs import PreparedRows, weight_of
from crossgraft.models.classifier import Classifier
from crossgraft.seeding import torch_generator

_NetworkT = TypeVar("_NetworkT", bound=nn.Module)
BATCH_SIZE = 64
"""Images of the batches whose means and variances are averaged, roughly."""


def batch_norms_of(network: nn.Module) -> list[str]:
    """Names of the layers that normalise with kept means and variances in eval mode."""
    return [name for name, layer in network.named_modules() if _keeps_statistics(layer)]


def moved_batch_norms(start: nn.Module, end: nn.Module) -> list[str]:
    """Names of those whose mean or variance differs between two networks that are built alike."""
    others = dict(start.named_modules())
    return [name for name in batch_norms_of(end) if not _same_statistics(end.get_submodule(name), others[name])]


def with_estimated_statistics(network: _NetworkT, images: PreparedRows, *, device: str = "cpu") -> _NetworkT:
    """A copy whose BatchNorm layers have the statistics of ``images``; no weight differs. In eval mode, on the CPU.

    Cost: two forward passes per image, roughly: that of a layer in train mode takes longer.
    """
    twin = copy.deepcopy(network).eval()
    weight = weight_of(twin)
    estimate_statistics(batch_norms_of(twin), twin, images, device=device)
    return twin if weight is None else twin.to(weight.device)


def estimate_statistics(layers: Sequence[str], network: nn.Module, images: PreparedRows, *, device: str = "cpu") -> None:
    """Give ``layers`` the plain average of mean and variance over batches of all images, with nothing else in train mode.

    Batches are of nearly equal size, in an order that is drawn once and for all: rows of a folder come class by class.

    Args:
        layers: Names of BatchNorm layers.
        network: Is changed, and moved to ``device``.
        images: Images as evaluation shows them.
        device: Where the network runs.
    """
    norms = [layer for name in layers if _keeps_statistics(layer := network.get_submodule(name))]
    kept = [(layer.momentum, layer.num_batches_tracked) for layer in norms]
    order = torch.randperm(len(images), generator=torch_generator(0, "statistics of BatchNorm"))
    network.to(device)
    for layer in norms:
        layer.momentum = None
        layer.num_batches_tracked = None if layer.num_batches_tracked is None else layer.num_batches_tracked.clone()
        layer.reset_running_stats()
        layer.train()
    rows_of_batches = order.tensor_split(max(1, round(len(images) / BATCH_SIZE)))
    batches = (images.prepared(rows) for rows in rows_of_batches)
    weight = weight_of(network)
    read = network.features if isinstance(network, Classifier) else None
    for _ in run_pass(network, batches, read=read, like=weight, eval_mode=False):
        pass  # the layers in train mode look at them
    for layer, (momentum, count) in zip(norms, kept, strict=True):
        layer.momentum = momentum
        layer.num_batches_tracked = None if count is None else count.to(device)
        layer.eval()


def _keeps_statistics(layer: nn.Module) -> TypeGuard[nn.modules.batchnorm._BatchNorm]:
    return isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is not None


def _same_statistics(first: nn.Module, second: nn.Module) -> bool:
    return all(torch.equal(getattr(first, name).cpu(), getattr(second, name).cpu()) for name in ("running_mean", "running_var"))
