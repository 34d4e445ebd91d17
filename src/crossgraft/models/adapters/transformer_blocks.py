"""Which part of a transformer block is the norm in front of its MLP, and whether the block is built as AdaptFormer needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from crossgraft.models.taps import watch

_NORMS, _MLPS = ("norm2", "ln_2", "norm_2", "layernorm_after"), ("mlp", "ffn")
_TOLERANCE = 1e-3
"""Relative to what is added to x₁; a block of another topology is off by the order of x₁ itself."""
_ROUNDING = 2.0
"""Rounding error of the sum, in units of its last place: a learned scale that begins at 1e-6 leaves nothing else."""


def norm_and_mlp(block: nn.Module) -> tuple[nn.Module, nn.Module] | None:
    """The norm in front of the MLP, and the MLP; None where the block has no such parts."""
    parts = dict(block.named_children())
    norm, mlp = (next((parts[name] for name in names if name in parts), None) for names in (_NORMS, _MLPS))
    if norm is None or mlp is None or not any(True for _ in norm.parameters()):
        return None
    return norm, mlp


@torch.no_grad()
def pre_norm_blocks(network: nn.Module, names: Sequence[str], run: Callable[[], object]) -> dict[str, bool]:
    """Name of each block that has a norm in front of an MLP → whether it is ``x₂ = x₁ + g · MLP(norm(x₁))``.

    g is one number per channel.

    Args:
        network: Network in eval mode.
        names: Names of its blocks.
        run: Makes one forward pass of ``network``.
    """
    blocks = {name: network.get_submodule(name) for name in names}
    parts = {name: found for name, block in blocks.items() if (found := norm_and_mlp(block)) is not None}
    is_pre_norm = dict.fromkeys(parts, False)
    x1: dict[str, Tensor] = {}
    branch: dict[str, Tensor] = {}

    def keep(kept: dict[str, Tensor], name: str, tensor: Tensor) -> None:
        kept[name] = tensor.clone()  # a block may add in place

    def compare(name: str, output: object) -> None:
        if isinstance(output, Tensor) and name in x1 and name in branch:
            is_pre_norm[name] = _is_scaled_sum(x1[name], branch[name], output)

    with (
        watch(
            {name: norm for name, (norm, _) in parts.items()}, lambda name, args: keep(x1, name, args[0]), of="input"
        ),
        watch({name: mlp for name, (_, mlp) in parts.items()}, lambda name, output: keep(branch, name, output)),
        watch({name: blocks[name] for name in parts}, compare),
    ):
        run()
    return is_pre_norm


def _is_scaled_sum(x1: Tensor, branch: Tensor, output: Tensor) -> bool:
    """Whether ``output`` is x₁ + g · branch, with g found by least squares in each channel."""
    if x1.shape != branch.shape or x1.numel() != output.numel():
        return False
    added = output.reshape(x1.shape) - x1
    tokens = tuple(range(added.ndim - 1))
    square = branch.square().sum(tokens)
    scale = (branch * added).sum(tokens) / square.clamp_min(torch.finfo(square.dtype).tiny)
    rounding = torch.finfo(output.dtype).eps * output.abs().max()
    allowed = torch.maximum(_TOLERANCE * added.abs().max(), _ROUNDING * rounding)
    return bool((added - scale * branch).abs().max() <= allowed)
