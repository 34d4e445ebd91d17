"""What predicts a block's input from its output: learned beside the network, and thrown away after training."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import skip_init

from crossgraft.tune.sim.distances import Tokens, standardised
from crossgraft.tune.sim.options import SimOptions

_WIDEST = 128


class Reconstructor(nn.Module):
    """G ∘ H of one block, and H alone for the target.

    Projected (equations 2 to 4): H is C_in → 2K → K → K with ReLU, shared by output and input, so that it learns at all:
    the target has no gradient. G is linear. An output of another width goes through a linear map without bias first.
    Unprojected (equation 1): G is C_out → 2K → C_in with ReLU, and the target is the input itself.

    Args:
        width_in: Channels C_in of what the block takes.
        width_out: Channels C_out of what it gives.
        options: ``K``, ``order`` and ``projected`` count.
        generator: Draws the weights, on the CPU.
    """

    def __init__(self, width_in: int, width_out: int, options: SimOptions, generator: torch.Generator) -> None:
        super().__init__()
        self._standardise = options.order == "paper"
        width = options.width(min(_WIDEST, width_in))

        def linear(rows: int, columns: int, *, bias: bool = True) -> nn.Linear:
            return _drawn_linear(rows, columns, generator, bias=bias)

        if not options.projected:
            self.projector: nn.Module = nn.Identity()
            self.adapt: nn.Module = nn.Identity()
            self.predictor: nn.Module = nn.Sequential(
                linear(width_out, 2 * width), nn.ReLU(inplace=True), linear(2 * width, width_in)
            )
            return
        self.adapt = nn.Identity() if width_in == width_out else linear(width_out, width_in, bias=False)
        self.projector = nn.Sequential(
            linear(width_in, 2 * width),
            nn.ReLU(inplace=True),
            linear(2 * width, width),
            nn.ReLU(inplace=True),
            linear(width, width),
        )
        self.predictor = linear(width, width)

    def forward(
        self, output: Float[Tensor, "images tokens width_out"], taken: Float[Tensor, "images tokens width_in"]
    ) -> tuple[Float[Tensor, "images tokens projected"], Float[Tensor, "images tokens projected"]]:
        """The prediction, part of the graph, and the target."""
        with torch.no_grad():
            target = self._projected(taken)
        return self.predictor(self._projected(self.adapt(output))), target

    def _projected(self, tokens: Tokens) -> Float[Tensor, "images tokens projected"]:
        projected = self.projector(tokens)
        return standardised(projected) if self._standardise else projected


class Reconstructors(nn.Module):
    """The reconstructors of all blocks, by the name of the block."""

    def __init__(self) -> None:
        super().__init__()
        self._names: list[str] = []
        self._parts = nn.ModuleList()

    @property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks."""
        return tuple(self._names)

    def add(self, block: str, reconstructor: Reconstructor) -> None:
        """That of one more block."""
        self._names.append(block)
        self._parts.append(reconstructor)

    def by_block(self) -> dict[str, Reconstructor]:
        """Name of each block → its reconstructor."""
        return {name: cast(Reconstructor, part) for name, part in zip(self._names, self._parts, strict=True)}

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Groups of an optimiser: matrices, and biases without weight decay."""
        parameters = list(self.parameters())
        groups: list[dict[str, Any]] = [
            {"params": [each for each in parameters if each.ndim > 1]},
            {"params": [each for each in parameters if each.ndim <= 1], "weight_decay": 0.0},
        ]
        return [group for group in groups if group["params"]]

    def tensors(self) -> dict[str, Tensor]:
        """All weights as ``<block>.<name>``; they share memory with the parameters."""
        named = self.by_block().items()
        return {f"{block}.{key}": tensor for block, each in named for key, tensor in each.state_dict().items()}

    def nothing_of_others(self, blocks: Collection[str]) -> Tensor | float:
        """0, with a gradient for all blocks but these: processes that train together wait for every parameter."""
        others = [each for block, each in self.by_block().items() if block not in blocks]
        sums = [parameter.sum() for each in others for parameter in each.parameters()]
        return 0 * torch.stack(sums).sum() if sums else 0.0


def _drawn_linear(width_in: int, width_out: int, generator: torch.Generator, *, bias: bool) -> nn.Linear:
    """As ``nn.Linear`` draws it, but from ``generator``."""
    layer = cast(nn.Linear, skip_init(nn.Linear, width_in, width_out, bias=bias))
    bound = 1 / math.sqrt(width_in)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))
    return layer
