"""LoRA: a product of two small matrices beside a linear layer or a convolution.

Source: Hu et al., *LoRA: Low-Rank Adaptation of Large Language Models*, ICLR 2022 (arXiv 2106.09685), equation 3:
``h = W₀ x + (α / r) B A x``. Convolutions as in Yeh et al., arXiv 2309.14859, section 3.2, without the middle factor.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal, cast, get_args

import torch
import torch.nn.functional as F  # noqa: N812
from jaxtyping import Float
from timm.layers.conv2d_same import Conv2dSame, conv2d_same
from torch import Tensor, nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapters._adapter import Adapter, in_type_of

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
TransposedConvolution = nn.ConvTranspose1d | nn.ConvTranspose2d | nn.ConvTranspose3d

_CONVOLVE: Mapping[int, Callable[..., Tensor]] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_CONVOLVE_BACK: Mapping[int, Callable[..., Tensor]] = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
_FORWARDS = (
    nn.Linear.forward,
    *(kind.forward for kind in (nn.Conv1d, nn.Conv2d, nn.Conv3d, Conv2dSame)),
    *(kind.forward for kind in (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)),
)


def why_no_lora(layer: nn.Module) -> str | None:
    """Why LoRA cannot stand beside this layer; None: it can.

    A layer that computes its weight anew in each pass (a standardised convolution) is not linear in it, so that there is no
    weight to merge into.
    """
    if not isinstance(layer, nn.Linear | Convolution | TransposedConvolution):
        return f"it is a {type(layer).__name__}, neither linear nor a convolution"
    if type(layer).forward not in _FORWARDS:
        return f"a {type(layer).__name__} does more with its weight than a linear layer or a convolution"
    return None


class LoraAdapter(Adapter):
    """``host(x) + (α / r) B A dropout(x)``; A is drawn, B begins as zero.

    Attributes:
        A: From the host's inputs to r numbers.
        B: From r numbers to the host's outputs.
        scaling: α / r.
        dropout: Probability that an input of A is left out in training.
    """

    kind: ClassVar[str] = "lora"

    A: nn.Parameter
    B: nn.Parameter

    def __init__(self, weight: Tensor, A: Sequence[int], B: Sequence[int], *, r: int, alpha: float, dropout: float) -> None:
        super().__init__()
        self.register_parameter("A", nn.Parameter(weight.new_zeros(tuple(A))))
        self.register_parameter("B", nn.Parameter(weight.new_zeros(tuple(B))))
        self.r, self.scaling, self.dropout = r, alpha / r, dropout
        self._base: Tensor | None = None

    @classmethod
    def make(cls, host: nn.Module, options: Mapping[str, Any], *, name: str) -> Adapter:
        """One that fits a linear layer, a convolution or a transposed convolution.

        Args:
            host: The layer.
            options: ``r``, ``alpha``, ``dropout``, and of a linear layer ``rows``: start and stop of the outputs that are
                adapted, each range with matrices of its own.
            name: Name of the layer.

        Raises:
            UsageError: It is another layer, or r does not go with its groups.
        """
        reason = why_no_lora(host)
        if reason is not None:
            raise UsageError(f"LoRA cannot adapt {name}: {reason}.")
        if isinstance(host, nn.Linear):
            return LoraLinear(host, **options)
        layer = cast(Convolution | TransposedConvolution, host)
        if options["r"] % layer.groups:
            raise UsageError(
                f"LoRA cannot adapt {name}: its {layer.groups} groups of channels need a rank r that is a multiple of "
                f"{layer.groups}, asked for {options['r']}. Name other layers with targets=."
            )
        if isinstance(layer, Convolution):
            return LoraConvolution(layer, **options)
        return LoraTransposedConvolution(layer, **options)

    def draw(self, generator: torch.Generator) -> None:
        """A as a linear layer is drawn (uniform within 1 / √fan-in), B = 0."""
        drawn = torch.empty(self.A.shape)
        nn.init.kaiming_uniform_(drawn, a=math.sqrt(5), generator=generator)
        in_type_of(drawn, self.A)
        in_type_of(torch.zeros(self.B.shape), self.B)

    @property
    def adds_nothing(self) -> bool:
        """Whether B is 0, as at first."""
        return super().adds_nothing or not bool(self.B.any())

    def watch(self, host: nn.Module) -> None:
        """Add to what the layer gives."""
        host.register_forward_hook(self._add)

    def _add(self, host: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        if not self.is_on:
            return output
        x = F.dropout(inputs[0], self.dropout, self.training)
        return output + self.addition(host, x, output)

    @abstractmethod
    def addition(self, host: Any, x: Tensor, output: Tensor) -> Tensor:
        """(α / r) B A x, of the shape of ``output``."""

    @abstractmethod
    def weight_change(self, host: Any) -> Tensor:
        """(α / r) B A in the shape of the host's weight."""

    @torch.no_grad()
    def merge(self, host: nn.Module) -> None:
        """W₀ + (α / r) B A becomes the weight, rounded once; W₀ is kept."""
        if not self.merged:
            weight = cast(Tensor, host.weight)
            self._base = weight.detach().clone()
            weight.copy_(weight.double() + self.weight_change(host))
            self.merged = True

    @torch.no_grad()
    def unmerge(self, host: nn.Module) -> None:
        """W₀ is put back bit for bit."""
        if self._base is not None:
            cast(Tensor, host.weight).copy_(self._base)
            self._base, self.merged = None, False


class LoraLinear(LoraAdapter):
    """Beside a linear layer, on all of its outputs or on some ranges of them.

    A layer that gives queries, keys and values at once is three layers in one. Ranges of its outputs each have an A and a B of
    their own, as separate layers would; outputs in no range stay exactly as they were.

    Args:
        host: The layer.
        r: Rank.
        alpha: α.
        dropout: Dropout on the inputs of A.
        rows: Start and stop of each range.
    """

    A: Float[nn.Parameter, "rank_of_all_ranges inputs"]
    B: Float[nn.Parameter, "adapted_outputs rank"]

    def __init__(
        self, host: nn.Linear, *, r: int, alpha: float, dropout: float = 0.0, rows: Sequence[Sequence[int]] = ()
    ) -> None:
        self.rows = [(int(start), int(stop)) for start, stop in rows] or [(0, host.out_features)]
        adapted = sum(stop - start for start, stop in self.rows)
        A, B = (len(self.rows) * r, host.in_features), (adapted, r)
        super().__init__(host.weight, A, B, r=r, alpha=alpha, dropout=dropout)

    def factors(self) -> list[tuple[range, Tensor, Tensor]]:
        """For each range: its outputs, its A (r, inputs) and its B (outputs of the range, r)."""
        ranges = [range(start, stop) for start, stop in self.rows]
        return list(zip(ranges, self.A.split(self.r), self.B.split([len(outputs) for outputs in ranges]), strict=True))

    def addition(self, host: nn.Linear, x: Tensor, output: Tensor) -> Tensor:
        """Ranges beside each other, zeros between them."""
        inner = F.linear(x, self.A).split(self.r, dim=-1)
        parts: list[Tensor] = []
        done = 0
        for (outputs, _, B), projected in zip(self.factors(), inner, strict=True):
            parts += [output.new_zeros(*output.shape[:-1], outputs.start - done)] if outputs.start > done else []
            parts.append(self.scaling * F.linear(projected, B))
            done = outputs.stop
        parts += [output.new_zeros(*output.shape[:-1], host.out_features - done)] if done < host.out_features else []
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)

    def weight_change(self, host: nn.Linear) -> Float[Tensor, "outputs inputs"]:
        """Rows of no range are zero."""
        change = torch.zeros(host.weight.shape, dtype=torch.float64, device=host.weight.device)
        for outputs, A, B in self.factors():
            change[outputs.start : outputs.stop] = self.scaling * (B.double() @ A.double())
        return change


class LoraConvolution(LoraAdapter):
    """Beside a convolution: A is the same convolution to r channels, B one of size 1; both in the host's groups."""

    def __init__(self, host: Convolution, *, r: int, alpha: float, dropout: float = 0.0) -> None:
        ones = (1,) * len(host.kernel_size)
        A = (r, host.in_channels // host.groups, *host.kernel_size)
        B = (host.out_channels, r // host.groups, *ones)
        super().__init__(host.weight, A, B, r=r, alpha=alpha, dropout=dropout)

    def addition(self, host: Convolution, x: Tensor, output: Tensor) -> Tensor:
        """The input is padded as the host pads it."""
        if isinstance(host, Conv2dSame):
            same: Any = host  # timm says pairs, torch says tuples
            inner = conv2d_same(x, self.A, None, same.stride, same.padding, same.dilation, same.groups)
        else:
            inner = host._conv_forward(x, self.A, None)
        return self.scaling * _CONVOLVE[self.A.ndim - 2](inner, self.B, groups=host.groups)

    def weight_change(self, host: Convolution) -> Tensor:
        """A product of matrices in each group."""
        groups = host.groups
        A = self.A.double().reshape(groups, self.r // groups, -1)
        B = self.B.double().reshape(groups, host.out_channels // groups, self.r // groups)
        return self.scaling * (B @ A).reshape(host.weight.shape)


class LoraTransposedConvolution(LoraAdapter):
    """Beside a transposed convolution, mirrored: A has size 1, B is the same transposed convolution from r channels."""

    def __init__(self, host: TransposedConvolution, *, r: int, alpha: float, dropout: float = 0.0) -> None:
        ones = (1,) * len(host.kernel_size)
        A = (r, host.in_channels // host.groups, *ones)
        B = (r, host.out_channels // host.groups, *host.kernel_size)
        super().__init__(host.weight, A, B, r=r, alpha=alpha, dropout=dropout)

    def addition(self, host: TransposedConvolution, x: Tensor, output: Tensor) -> Tensor:
        """The addition, in the size of the host's output, which a caller may have asked for."""
        dims = self.A.ndim - 2
        inner = _CONVOLVE[dims](x, self.A, groups=host.groups)
        smallest = [
            (x.shape[2 + i] - 1) * host.stride[i] - 2 * int(host.padding[i]) + host.dilation[i] * (host.kernel_size[i] - 1) + 1
            for i in range(dims)
        ]
        more = [output.shape[2 + i] - smallest[i] for i in range(dims)]
        back = _CONVOLVE_BACK[dims]
        return self.scaling * back(
            inner, self.B, None, host.stride, host.padding, more, groups=host.groups, dilation=host.dilation
        )

    def weight_change(self, host: TransposedConvolution) -> Tensor:
        """A product of matrices in each group; inputs come first in this weight."""
        groups = host.groups
        A = self.A.double().reshape(groups, self.r // groups, host.in_channels // groups)
        B = self.B.double().reshape(groups, self.r // groups, -1)
        return self.scaling * (A.transpose(1, 2) @ B).reshape(host.weight.shape)


AUTO = "auto"
BETWEEN_TARGETS = "+"
Fused = Literal["q+v", "q+k+v"]
"""Which of the three parts of a layer that gives queries, keys and values at once."""

_FUSED = "qkv"
_QUERIES_AND_VALUES = ("q", "v", "q_proj", "v_proj", "query", "value", "to_q", "to_v", "wq", "wv")
_ATTENTION = re.compile("attn|attention", re.IGNORECASE)

Rows = list[list[int]]


def find_targets(
    network: nn.Module, called: Collection[str], targets: str, *, fused: str, model: str, fixed: Collection[str] = ()
) -> dict[str, Rows]:
    """Name of each layer to adapt → the ranges of its outputs; empty: all of them.

    Args:
        network: Layers below ``body`` are looked at.
        called: Names of the modules that take part in a forward pass by being called.
        targets: ``auto``, or names, globs and types with ``+`` between them. ``auto``: the layers that give queries and
            values; in a network without attention all convolutions that do not work in groups.
        fused: Adapted parts of a layer ``qkv``: ``q+v``, or ``q+k+v``.
        model: Name of the network, for messages.
        fixed: Names of parameters that no method trains.

    Raises:
        UnknownNameError: A part of ``targets`` fits no layer.
        UsageError: A layer cannot be adapted; the message says which and why.
    """
    if fused not in get_args(Fused):
        raise UnknownNameError("fused of lora", fused, get_args(Fused))
    layers = {name: layer for name, layer in network.named_modules() if name.startswith("body.")}
    usable = {n: layer for n, layer in layers.items() if why_no_lora(layer) is None and f"{n}.weight" not in fixed}
    chosen = _automatic(usable, layers, model) if targets == AUTO else _named(usable, targets, layers, model)
    _refuse_uncalled(chosen, called, model)
    return {name: _rows(network, name, layer, fused) for name, layer in usable.items() if name in chosen}


def _automatic(usable: Mapping[str, nn.Module], layers: Mapping[str, nn.Module], model: str) -> list[str]:
    linear = [name for name, layer in usable.items() if isinstance(layer, nn.Linear)]
    attention = [name for name in linear if _last(name) == _FUSED or _last(name) in _QUERIES_AND_VALUES]
    if attention:
        return attention
    attending = next((name for name, layer in layers.items() if _ATTENTION.search(type(layer).__name__)), None)
    if attending is not None:
        raise UsageError(
            f"LoRA does not find the queries and values of {attending} in {model}. Name what it adapts with "
            f"lora:targets=NAME, for example {_listed(usable, 3)}."
        )
    convolutions = [n for n, layer in usable.items() if isinstance(layer, Convolution) and layer.groups == 1]
    if not convolutions:
        raise UsageError(
            f"LoRA finds nothing to adapt in {model}: it has neither queries and values nor convolutions of the usual kind."
            + (f" Name layers with lora:targets=NAME, for example {_listed(usable, 3)}." if usable else "")
        )
    return convolutions


def _named(usable: Mapping[str, nn.Module], targets: str, layers: Mapping[str, nn.Module], model: str) -> list[str]:
    chosen: list[str] = []
    for target in (part.strip() for part in targets.split(BETWEEN_TARGETS)):
        fitting = [name for name, layer in usable.items() if fits_target(name, layer, target)]
        if not fitting:
            others = [(name, layer) for name, layer in layers.items() if fits_target(name, layer, target)]
            learned = [(name, layer) for name, layer in others if any(True for _ in layer.parameters())]
            if learned:
                name, layer = learned[0]
                raise UsageError(f"LoRA cannot adapt {name} of {model}: {why_no_lora(layer)}.")
            raise UnknownNameError(f"layer of {model}", target, {*usable, *(type(layer).__name__ for layer in usable.values())})
        chosen += fitting
    return chosen


def fits_target(name: str, layer: nn.Module, target: str) -> bool:
    """Its type; or its name, the last words of its name, or what it lies in (``blocks.11``), also as a glob."""
    if type(layer).__name__ == target:
        return True
    words = name.split(".")
    beginnings = [".".join(words[start:end]) for start in (0, 1) for end in range(start + 1, len(words) + 1)]
    endings = [".".join(words[start:]) for start in range(len(words))]
    return any(fnmatchcase(part, target) for part in (*beginnings, *endings))


def _refuse_uncalled(chosen: Sequence[str], called: Collection[str], model: str) -> None:
    for name in chosen:
        if name not in called:
            raise UsageError(
                f"LoRA cannot adapt {name} of {model}: the network takes its weight without calling the layer, so that an "
                "addition beside it would be lost. Name other layers with lora:targets=NAME."
            )


def _rows(network: nn.Module, name: str, layer: nn.Module, fused: str) -> Rows:
    """Ranges of queries, keys and values; none of a layer that is not fused."""
    if _last(name) != _FUSED or not isinstance(layer, nn.Linear):
        return []
    rows, rest = divmod(layer.out_features, 3)
    attention = network.get_submodule(name.rpartition(".")[0])
    proj = getattr(attention, "proj", None)
    expected = proj.in_features if isinstance(proj, nn.Linear) else layer.in_features
    if rest or rows != expected or getattr(attention, "head_first", False):
        raise UsageError(
            f"LoRA does not know which outputs of {name} are queries and which are values: they do not lie in three equal "
            "ranges. Name other layers with lora:targets=NAME."
        )
    return [[0, rows], [2 * rows, 3 * rows]] if fused == "q+v" else [[i * rows, (i + 1) * rows] for i in range(3)]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _listed(names: Collection[str], number: int) -> str:
    return ", ".join(list(names)[-number:])
