"""The matrix products that linear layers have in a training step: what no implementation of them can do without."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack

import torch
from torch import Tensor, nn


def products_of(layers: Iterable[nn.Linear], step: Callable[[], None]) -> Callable[[], None]:
    """Forward products of each call of a layer in one step, and where it learns those of both gradients; on noise.

    Args:
        layers: Those that count.
        step: Makes one step, here once, to see what the layers take.
    """
    generator = torch.Generator().manual_seed(0)
    made: list[tuple[Tensor, Tensor, Tensor, bool]] = []

    def note(layer: nn.Linear, taken: tuple[Tensor, ...]) -> None:
        rows, width_in, width_out = taken[0].numel() // layer.in_features, layer.in_features, layer.out_features
        shapes = (rows, width_in), (width_out, width_in), (rows, width_out)
        inputs, weight, gradient = (torch.randn(shape, generator=generator) for shape in shapes)
        made.append((inputs, weight, gradient, torch.is_grad_enabled()))

    with ExitStack() as hooks:
        for layer in layers:
            hooks.callback(layer.register_forward_pre_hook(note).remove)
        step()

    def products() -> None:
        for inputs, weight, gradient, learns in made:
            torch.mm(inputs, weight.T)
            if learns:
                torch.mm(gradient, weight)
                torch.mm(gradient.T, inputs)

    return products
