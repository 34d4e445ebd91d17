"""Which part of a transformer block is the norm in front of its MLP, and whether the block is built as AdaptFormer needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

_NORMS, _MLPS = ("norm2", "ln_2", "norm_2", "layernorm_after"), ("mlp", "ffn")
_TOLERANCE = 1e-3
"""Relative to what is added to x₁; a block of another topology is off by the order of x₁ itself."""
_ROUNDING = 2.0
"""Rounding error of the sum, in units of its last place: a learned scale that begins at 1e-6 leaves nothing else."""


def norm_of_mlp(block: nn.Module) -> tuple[str, nn.Module] | None:
    """Name and module of the norm in front of the MLP; None where the block has no such part."""
    parts = dict(block.named_children())
    norm = next((name for name in _NORMS if name in parts), None)
    if norm is None or not any(name in parts for name in _MLPS) or not any(True for _ in parts[norm].parameters()):
        return None
    return norm, parts[norm]


class BlockWatch:
    """Whether a block is ``x₂ = x₁ + g · MLP(norm(x₁))``, g one number per channel, found from one forward pass.

    Args:
        block: Block in eval mode, with a norm in front of an MLP.
    """

    def __init__(self, block: nn.Module) -> None:
        parts = dict(block.named_children())
        found = norm_of_mlp(block)
        branch = next(parts[name] for name in _MLPS if name in parts)
        self._x1: Tensor | None = None
        self._branch: Tensor | None = None
        self.is_pre_norm = False
        self._handles = [
            *([] if found is None else [found[1].register_forward_pre_hook(self._keep_x1)]),
            branch.register_forward_hook(self._keep_branch),
            block.register_forward_hook(self._compare),
        ]

    def _keep_x1(self, _norm: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._x1 = inputs[0].clone()  # a block may add in place

    def _keep_branch(self, _mlp: nn.Module, _inputs: tuple[Any, ...], output: Tensor) -> None:
        self._branch = output.clone()

    def _compare(self, _block: nn.Module, _inputs: tuple[Any, ...], output: object) -> None:
        if not isinstance(output, Tensor) or self._x1 is None or self._branch is None:
            return
        if self._x1.shape != self._branch.shape or self._x1.numel() != output.numel():
            return
        added = output.reshape(self._x1.shape) - self._x1
        tokens = tuple(range(added.ndim - 1))
        square = self._branch.square().sum(tokens)
        scale = (self._branch * added).sum(tokens) / square.clamp_min(torch.finfo(square.dtype).tiny)
        rounding = torch.finfo(output.dtype).eps * output.abs().max()
        allowed = torch.maximum(_TOLERANCE * added.abs().max(), _ROUNDING * rounding)
        self.is_pre_norm = bool((added - scale * self._branch).abs().max() <= allowed)

    def stop(self) -> None:
        """Look no longer."""
        for handle in self._handles:
            handle.remove()
        self._x1 = self._branch = None


@torch.no_grad()
def pre_norm_blocks(network: nn.Module, names: Sequence[str], run: Callable[[], object]) -> dict[str, bool]:
    """Name of each block that has a norm in front of an MLP → whether it is pre-norm.

    Args:
        network: Network in eval mode.
        names: Names of its blocks.
        run: Makes one forward pass of ``network``.
    """
    blocks = {name: network.get_submodule(name) for name in names}
    watches = {name: BlockWatch(block) for name, block in blocks.items() if norm_of_mlp(block) is not None}
    try:
        run()
    finally:
        for watch in watches.values():
            watch.stop()
    return {name: watch.is_pre_norm for name, watch in watches.items()}
