"""Where a network had its own head: the place that a new one goes to when the network is handed on."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import torch
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.penultimate import linear_heads
from crossgraft.models.surgery import put_layer
from crossgraft.seeding import torch_generator

if TYPE_CHECKING:
    from crossgraft.models.classifier import Classifier

_SAME_OUTPUT = 1e-5


def head_places(classifier: Classifier, network: nn.Module) -> Sequence[str]:
    """Names of the linear layers that the new head belongs to; several where a network averages equal heads.

    Args:
        classifier: Its recipe says where a head was taken out.
        network: The same architecture, with a head for as many classes.
    """
    cut = classifier.recipe.cut
    if cut.route.kind == "linear_head":
        return [cut.route.head]
    if cut.removed:
        return cut.removed
    shape, heads = classifier.head.weight.shape, linear_heads(network) if cut.route.kind == "forward_features" else ()
    return [name for name in heads if cast(nn.Linear, network.get_submodule(name)).weight.shape == shape]


@torch.no_grad()
def with_head_in_place(classifier: Classifier) -> tuple[nn.Module, Sequence[str]]:
    """A copy of the whole network, adapters included, its own head the new one; and the names of that head.

    Raises:
        UsageError: What the network has behind its features is more than a linear layer.

    Cost: a copy of the weights and two forward passes of two images.
    """
    twin = copy.deepcopy(classifier).eval()
    p = classifier.preprocessing
    images = torch.randn(2, p.channels, p.height_pixels, p.width_pixels, generator=torch_generator(0, "head in place"))
    images = images.to(classifier.head.weight)
    here = twin(images)
    network, places = twin.body, head_places(classifier, twin.body)
    for place in places:
        put_layer(network, place, copy.deepcopy(twin.head))
    there = network(images)
    tolerance = _SAME_OUTPUT * max(1.0, float(here.abs().max()))
    if not places or here.shape != there.shape or not torch.allclose(here, there, rtol=0, atol=tolerance):
        raise UsageError(
            f"The new head of {classifier.recipe.name} cannot be put in the place of its own: what the network has behind its "
            "features is more than one linear layer."
        )
    return network, places
