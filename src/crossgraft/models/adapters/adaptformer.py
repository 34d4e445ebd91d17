"""AdaptFormer: a bottleneck beside the MLP of a transformer block.

Source: Chen et al., *AdaptFormer: Adapting Vision Transformers for Scalable Visual Recognition*, NeurIPS 2022
(arXiv 2205.13535), equations 1 and 2, with the defaults of the published recipe.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapters._adapter import Adapter, in_type_of
from crossgraft.models.taps import only_tensor, watch

_NORMS, _MLPS = ("norm2", "ln_2", "norm_2", "layernorm_after", "layer_norm2"), ("mlp", "ffn")
_FIRST_HALF, _SECOND_HALF = "intermediate", "output"  # of an MLP in two parts (transformers)
_TOLERANCE = 1e-3
"""Relative to what is added to x₁; a block of another topology is off by the order of x₁ itself."""
_ROUNDING = 2.0
"""Rounding error of the sum, in units of its last place: a learned scale that begins at 1e-6 leaves nothing else."""


def norm_and_mlp(block: nn.Module) -> tuple[nn.Module, nn.Module] | None:
    """The norm in front of the MLP, and the MLP (or what of it comes last); None where the block has no such parts."""
    parts = dict(block.named_children())
    mlps = (*_MLPS, _SECOND_HALF) if _FIRST_HALF in parts else _MLPS
    norm, mlp = (next((parts[name] for name in names if name in parts), None) for names in (_NORMS, mlps))
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
    parts = {name: pair for name, block in blocks.items() if (pair := norm_and_mlp(block)) is not None}
    is_pre_norm = dict.fromkeys(parts, False)
    x1: dict[str, Tensor] = {}
    branch: dict[str, Tensor] = {}

    def keep(kept: dict[str, Tensor], name: str, tensor: Tensor) -> None:
        kept[name] = tensor.clone()  # a block may add in place

    def compare(name: str, output: object) -> None:
        output = only_tensor(output)
        if isinstance(output, Tensor) and name in x1 and name in branch:
            is_pre_norm[name] = _is_scaled_sum(x1[name], branch[name], output)

    with (
        watch({name: norm for name, (norm, _) in parts.items()}, lambda name, args: keep(x1, name, args[0]), of="input"),
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


Norm = Literal["none", "in", "out"]


_WIDEST = 4
"""As the MLP beside it, over the width of the block."""


class AdaptFormerAdapter(Adapter):
    """``x₂ = x₁ + MLP(norm(x₁)) + s · Up(dropout(ReLU(Down(x₁))))``, with x₁ what goes into the norm of the MLP.

    The term is added to what the block gives, and not to what its MLP gives, because a learned scale or a dropped path may
    stand between the two.

    Attributes:
        down: Layer from d to the bottleneck; drawn as a linear layer is, its bias zero.
        up: Back to d; begins as zero.
        norm: A layer norm of its own, or None.
    """

    kind: ClassVar[str] = "adaptformer"

    down: nn.Linear
    up: nn.Linear

    def __init__(self, width: int, *, bottleneck: int, scale: float, dropout: float, norm: Norm) -> None:
        super().__init__()
        if norm not in get_args(Norm):
            raise UnknownNameError("norm of adaptformer", norm, get_args(Norm))
        self.down = cast(nn.Linear, nn.utils.skip_init(nn.Linear, width, bottleneck))
        self.up = cast(nn.Linear, nn.utils.skip_init(nn.Linear, bottleneck, width))
        self.norm = None if norm == "none" else nn.LayerNorm(width)
        self.place, self.scale, self.dropout = norm, scale, dropout
        self._x1: Tensor | None = None

    @classmethod
    def make(cls, host: nn.Module, options: Mapping[str, Any], *, name: str) -> Adapter:
        """One that fits a block of a transformer.

        Args:
            host: The block.
            options: ``bottleneck``, ``scale``, ``dropout`` and ``norm``.
            name: Name of the block.

        Raises:
            UsageError: The block has no norm in front of an MLP, or is narrower than a fourth of the bottleneck.
        """
        parts = norm_and_mlp(host)
        if parts is None:
            raise UsageError(f"AdaptFormer cannot adapt {name}: it has no norm in front of an MLP.")
        weight = next(iter(parts[0].parameters()))
        if options["bottleneck"] > (most := max(_WIDEST * len(weight), 64)):
            raise UsageError(
                f"AdaptFormer cannot adapt {name}: a bottleneck of {options['bottleneck']} is none beside a block of width "
                f"{len(weight)}. Give at most adaptformer:{most}."
            )
        return cls(len(weight), **options).to(weight.device, weight.dtype)

    def draw(self, generator: torch.Generator) -> None:
        """Down as a linear layer is drawn, everything else zero: the block gives what it gave."""
        drawn = torch.empty(self.down.weight.shape)
        nn.init.kaiming_uniform_(drawn, a=math.sqrt(5), generator=generator)
        in_type_of(drawn, self.down.weight)
        for parameter in (self.down.bias, self.up.weight, self.up.bias):
            in_type_of(torch.zeros(parameter.shape), parameter)

    @property
    def adds_nothing(self) -> bool:
        """Whether the second layer is 0, and with ``norm="out"`` the shift behind it, as at first."""
        shift = self.norm.bias if self.norm is not None and self.place == "out" else None
        last = [self.up.weight, self.up.bias, *([] if shift is None else [shift])]
        return super().adds_nothing or not any(bool(parameter.any()) for parameter in last)

    def watch(self, host: nn.Module) -> None:
        """Take x₁ from the norm of the MLP, and add to what the block gives."""
        parts = norm_and_mlp(host)
        if parts is None:
            raise UsageError("AdaptFormer stands in a block without a norm in front of an MLP.")
        parts[0].register_forward_pre_hook(self._take)
        host.register_forward_hook(self._add)

    def addition(self, x1: Tensor) -> Tensor:
        """``s · Up(dropout(ReLU(Down(x₁))))``, of the shape of ``x1`` (…, d); with ``norm`` as in the authors' code."""
        inner = self.norm(x1) if self.norm is not None and self.place == "in" else x1
        inner = F.dropout(F.relu(self.down(inner)), self.dropout, self.training)
        added = self.scale * self.up(inner)
        return self.norm(added) if self.norm is not None and self.place == "out" else added

    def _take(self, _norm: nn.Module, inputs: tuple[Any, ...]) -> None:
        if self.is_on:
            self._x1 = inputs[0]

    def _add(self, _block: nn.Module, _inputs: tuple[Any, ...], output: Any) -> Any:
        x1, self._x1 = self._x1, None  # part of a graph, which is not kept
        if x1 is None:
            return None
        given = cast(Tensor, only_tensor(output))
        added = given + self.addition(x1).reshape(given.shape)  # some blocks work on a row of tokens and give a map (Swin)
        return added if given is output else tuple(added if part is given else part for part in output)

    @classmethod
    def why_not_mergeable(cls) -> str | None:
        """There is a ReLU between its two layers."""
        return "its bottleneck is not linear and stands beside the MLP, so no weight of the network can hold it"
