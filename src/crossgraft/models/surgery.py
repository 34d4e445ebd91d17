"""Take the head out of a network, so that what is left gives the penultimate features and can be trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from crossgraft.models.penultimate import Route, features_along, find_route, linear_heads
from crossgraft.models.taps import modes_kept

SOURCE_HEAD = "source head, not used"
FIXED = "fixed by the architecture"


@dataclass(frozen=True)
class Cut:
    """What was done to a network; names only, so it can be done again to another one of the same structure.

    Attributes:
        route: How the features are read.
        removed: Names of the linear layers where an identity stands now.
        untrainable: Name of each parameter that cannot or must not be trained → why.
    """

    route: Route
    removed: tuple[str, ...]
    untrainable: Mapping[str, str]


def take_head_out(module: nn.Module, probe: Tensor, *, name: str) -> Cut:
    """Replace the source head of ``module`` by identities where the features stay the same bit for bit.

    A head that cannot be taken out (a convolution with layers behind it, a network that looks at its head's
    attributes) stays; its parameters, which the features do not depend on, are listed as untrainable.

    Args:
        module: In eval mode; changed.
        probe: One image that it takes.
        name: For messages.

    Raises:
        UsageError: The features cannot be found.
    """
    fixed = {key: FIXED for key, parameter in module.named_parameters() if not parameter.requires_grad}
    with torch.no_grad():
        route = find_route(module, probe, name=name)
        expected = features_along(route, module, probe)
        removed = tuple(head for head in _candidates(module, route) if _try_to_remove(module, head, route, probe, expected))
    kept = {key: why for key, why in fixed.items() if not key.startswith(tuple(f"{head}." for head in removed))}
    idle = _without_effect(module, route, probe)
    forget_caches(module)
    return Cut(route, removed, {**kept, **idle})


def forget_caches(module: nn.Module) -> None:
    """Drop what layers of ``module`` keep of their weights in eval mode (LeViT: the positions' biases); modes stay.

    Such layers drop it when they enter train mode, but not when other weights are loaded.
    """
    with modes_kept(module):
        module.train()


def repeat_cut(module: nn.Module, cut: Cut) -> None:
    """Do to another network of the same structure what was done to the first.

    Raises:
        AttributeError: It has no such layers.
    """
    for head in cut.removed:
        module.get_submodule(head)  # setattr would make a new one
        put_layer(module, head, nn.Identity())
    module.get_submodule(cut.route.head)


def _candidates(module: nn.Module, route: Route) -> list[str]:
    """Linear layers that may be the head: the one the route names, or those that timm's ``get_classifier`` gives."""
    if route.kind == "linear_head":
        return [route.head]
    return linear_heads(module) if route.kind == "forward_features" else []


def _try_to_remove(module: nn.Module, head: str, route: Route, probe: Tensor, expected: Tensor) -> bool:
    layer = module.get_submodule(head)
    put_layer(module, head, nn.Identity())
    try:
        if torch.equal(features_along(route, module, probe), expected):
            return True
    except (RuntimeError, AttributeError, TypeError, ValueError):
        pass  # the network needs its head to run
    put_layer(module, head, layer)
    return False


def put_layer(module: nn.Module, name: str, layer: nn.Module) -> None:
    """Put ``layer`` in the place of the layer called ``name``."""
    parent, _, attribute = name.rpartition(".")
    setattr(module.get_submodule(parent), attribute, layer)


def _without_effect(module: nn.Module, route: Route, probe: Tensor) -> dict[str, str]:
    """Parameters that the features do not depend on, found by one backward pass."""
    forget_caches(module)
    parameters = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
    with torch.enable_grad():
        total = features_along(route, module, probe).sum()
        if not total.requires_grad:
            return dict.fromkeys(parameters, SOURCE_HEAD)
        gradients = cast(  # torch's stub does not know that None stands for unused ones
            "Sequence[Tensor | None]", torch.autograd.grad(total, list(parameters.values()), allow_unused=True)
        )
    return {name: SOURCE_HEAD for name, gradient in zip(parameters, gradients, strict=True) if gradient is None}
