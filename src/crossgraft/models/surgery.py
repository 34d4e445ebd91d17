"""Take the head out of a network, so that what is left gives the penultimate features and can be trained."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules

from crossgraft.compute import available_memory, rounded_size
from crossgraft.errors import OutOfMemoryError, UsageError
from crossgraft.models.penultimate import Route, features_along, find_route, linear_heads
from crossgraft.models.taps import modes_kept
from crossgraft.paths import shortened
from crossgraft.seeding import derive_seed

_BIAS = "bias"
_GAINS = ("gain", "gamma")
"""What whole branches are multiplied by, channel by channel."""


def build_seeded(build: Callable[[], nn.Module], seed: int, *names: object) -> nn.Module:
    """Call ``build`` under one stream of ``seed``; the global random state stays as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive_seed(seed, *names))
        return build()


def build_random(build: Callable[[], nn.Module], seed: int, *, source: str) -> nn.Module:
    """A network whose every trainable weight is random, even if ``build`` loads weights by itself.

    Two calls under two seeds tell: a trainable tensor that is the same both times (and not constant, as
    zeros and ones are) was loaded, and its layer is drawn anew with the layer's own ``reset_parameters``.

    Args:
        build: Returns the network.
        seed: Random seed of the control.
        source: Source for messages, and the name of the random stream.

    Raises:
        UsageError: Loaded weights belong to a layer without ``reset_parameters``; the message says what to
            do.
    """
    module = build_seeded(build, seed, "random weights", source)
    other = build_seeded(build, seed, "random weights, second look", source)
    loaded = _loaded_parameters(module, other)
    owners = sorted({name.rpartition(".")[0] for name in loaded})
    fixed = [owner for owner in owners if not callable(getattr(module.get_submodule(owner), "reset_parameters", None))]
    if fixed:
        raise UsageError(
            f"No random-weight control for {source}: the function loads weights by itself, and "
            f"{fixed[0] or 'the network'} has no reset_parameters. Give the function an argument pretrained, and load "
            "nothing when it is False."
        )

    def reset() -> nn.Module:
        for owner in owners:
            module.get_submodule(owner).reset_parameters()  # type: ignore[operator]
        return module

    return build_seeded(reset, seed, "random weights", source)


def open_branches(module: nn.Module, seed: int, *, source: str) -> None:
    """Draw anew what multiplies a branch of a random network by exactly 0, as many do at the beginning of a training.

    That is a good start, since every block begins as its shortcut, but no control: features would come from shortcuts alone,
    and no gradient would reach the layers of a branch. It concerns trainable weights that are 0 everywhere, of norms (the last
    one of a residual block), convolutions and linear layers, which get what their own ``reset_parameters`` gives, and gains of
    branches (of normaliser-free networks, SkipInit, ReZero), which become 1. Biases, tokens and embeddings of positions stay.

    Args:
        module: Changed in place.
        seed: Random seed of the control.
        source: Name of the random stream.
    """

    def draw() -> nn.Module:
        for part in module.modules():
            for name, parameter in part.named_parameters(recurse=False):
                if not parameter.requires_grad or name == _BIAS or bool(parameter.any()):
                    continue
                if parameter.numel() == 1 or name in _GAINS:
                    with torch.no_grad():
                        parameter.fill_(1.0)
                elif name == "weight" and callable(getattr(part, "reset_parameters", None)):
                    _redraw_weight(part)
        return module

    build_seeded(draw, seed, "random weights, zero branches", source)


def _redraw_weight(layer: Any) -> None:
    """As the layer draws it; its bias stays."""
    bias = getattr(layer, _BIAS, None)
    before = None if bias is None else bias.detach().clone()
    layer.reset_parameters()
    if bias is not None:
        with torch.no_grad():
            bias.copy_(before)


def _loaded_parameters(first: nn.Module, second: nn.Module) -> list[str]:
    twins = dict(second.named_parameters())
    return [
        name
        for name, parameter in first.named_parameters()
        if parameter.requires_grad and torch.equal(parameter, twins[name]) and bool((parameter != parameter.reshape(-1)[0]).any())
    ]


MOST_TENSORS = 100_000
"""Parameters and buffers of one network; the largest of timm have fewer than 5,000."""
MOST_VALUE = 1_000_000
"""The largest number among the arguments of an architecture: classes, pixels, channels, layers."""


def refuse_large_numbers(values: object, *, where: str) -> None:
    """Look for numbers that no architecture has, also inside lists and mappings.

    Raises:
        UsageError: There is one; constructors would count up to it, or allocate that much, before they fail.
    """
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        for value in values:
            refuse_large_numbers(value, where=where)
    elif isinstance(values, int | float) and abs(values) > MOST_VALUE:
        raise UsageError(
            f"A number in {where} is {shortened(repr(values))}; no architecture has one above {MOST_VALUE:,}. Correct it."
        )


@contextmanager
def building_limits(name: str) -> Generator[None]:
    """Count the tensors that modules register inside the block, before they are filled with values.

    Args:
        name: Name of the network, for the message.

    Raises:
        OutOfMemoryError: They need more memory than is available.
        UsageError: They are too many.
    """
    free, thread = available_memory(), threading.get_ident()
    num_bytes = num_tensors = 0

    def count(_module: nn.Module, _name: str, tensor: Tensor | None) -> None:
        nonlocal num_bytes, num_tensors
        if tensor is None or threading.get_ident() != thread:
            return
        num_bytes += tensor.numel() * tensor.element_size()
        num_tensors += 1
        if num_bytes > free:
            raise OutOfMemoryError(
                f"The network {name} needs more than {rounded_size(num_bytes)} of memory, but only {rounded_size(free)} is "
                "available. Check its kwargs."
            )
        if num_tensors > MOST_TENSORS:
            raise UsageError(f"The network {name} has more than {MOST_TENSORS:,} tensors. Check its kwargs.")

    hooks = [
        torch_modules.register_module_parameter_registration_hook(count),
        torch_modules.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


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
