"""Random weights from one seed, without a trace in torch's global random state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from crossgraft.errors import UsageError
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
    again = build_seeded(build, seed, "random weights, second look", source)
    loaded = _loaded_parameters(module, again)
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
