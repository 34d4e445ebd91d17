"""Where batch, positions and channels of a block's tensors are, and how an input comes to the positions of an output."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

_CONVOLUTIONS = {3: (nn.Conv1d, nn.ConvTranspose1d), 4: (nn.Conv2d, nn.ConvTranspose2d), 5: (nn.Conv3d, nn.ConvTranspose3d)}
"""By the axes of what they take."""
_NORMS = {3: (nn.BatchNorm1d, nn.InstanceNorm1d), 4: (nn.BatchNorm2d, nn.InstanceNorm2d), 5: (nn.BatchNorm3d, nn.InstanceNorm3d)}


class Axes(NamedTuple):
    """How many axes a tensor has, and which of them is the batch, which the channels; all others are positions."""

    num_axes: int
    batch_axis: int
    channel_axis: int


LAYOUTS: Mapping[str, Axes | None] = {
    "auto": None,
    "nchw": Axes(4, 0, 1),
    "nhwc": Axes(4, 0, 3),
    "nlc": Axes(3, 0, 2),
    "ncl": Axes(3, 0, 1),
    "lnc": Axes(3, 1, 2),
    "ncdhw": Axes(5, 0, 1),
    "ndhwc": Axes(5, 0, 4),
}
"""Letters of the axes in order: n images, c channels, l tokens (or time), d, h, w depth, height, width."""
_USUAL = {3: "nlc", 4: "nchw", 5: "ncdhw"}
_CHANNELS_LAST = {3: "nlc", 4: "nhwc", 5: "ndhwc"}
_CHANNELS_FIRST = {3: "ncl", 4: "nchw", 5: "ncdhw"}


class Widths(NamedTuple):
    """What the layers of a block say about where channels are.

    Attributes:
        of_maps: Number of axes → channels of all layers that take so many, and have the channels second.
        of_tokens: Channels of all layers that have them last.
        begins_with_maps: Whether the first layer that says anything has the channels second.
        tokens_first: Whether the block has its tokens before its batch.
    """

    of_maps: Mapping[int, frozenset[int]]
    of_tokens: frozenset[int]
    begins_with_maps: bool
    tokens_first: bool


def widths_of(block: nn.Module) -> Widths:
    """Ask every layer of a block; of one with ``tokens_first_layers``, its tokens are first until something else is known."""
    of_maps: dict[int, set[int]] = {axes: set() for axes in _USUAL}
    of_tokens: set[int] = set()
    begins_with_maps: bool | None = None
    for part in block.modules():
        says_second = {axes: _widths_of_maps(part, axes) for axes in of_maps}
        says_last = set[int]() if any(says_second.values()) else _widths_of_tokens(part)
        for axes, widths in says_second.items():
            of_maps[axes] |= widths
        of_tokens |= says_last
        if begins_with_maps is None and (says_last or any(says_second.values())):
            begins_with_maps = not says_last
    return Widths(
        {axes: frozenset(widths) for axes, widths in of_maps.items()},
        frozenset(of_tokens),
        bool(begins_with_maps),
        bool(tokens_first_layers(block)),
    )


def _widths_of_maps(part: nn.Module, axes: int) -> set[int]:
    """Channels of a layer that takes so many axes and has its channels second; nothing of others."""
    if isinstance(part, _CONVOLUTIONS[axes]):
        return {part.in_channels, part.out_channels}
    if isinstance(part, _NORMS[axes]):
        return {part.num_features}
    if isinstance(part, nn.GroupNorm):
        return {part.num_channels}
    if axes == 4 and isinstance(part, nn.LayerNorm) and "2d" in type(part).__name__:  # as timm and torchvision name it
        return {part.normalized_shape[-1]}
    return set()


def _widths_of_tokens(part: nn.Module) -> set[int]:
    """Channels of a layer that has them last; nothing of others."""
    if isinstance(part, nn.Linear):
        return {part.in_features, part.out_features}
    if isinstance(part, nn.LayerNorm):
        return {part.normalized_shape[-1]}
    if isinstance(part, nn.MultiheadAttention):
        return {part.embed_dim}
    if isinstance(part, nn.RNNBase):
        return {part.input_size, part.hidden_size * (2 if part.bidirectional else 1)}
    return set()


def tokens_first_layers(block: nn.Module) -> list[nn.Module]:
    """Attention and recurrent layers that have their tokens before their batch."""
    return [part for part in block.modules() if getattr(part, "batch_first", True) is False]


def has_tokens_first(shape: Sequence[int], inside: Sequence[int]) -> bool | None:
    """Whether a block has its tokens before its batch, of what it takes or gives and what such a layer in it takes.

    Its batch is where that of the layer is; a block that transposes has it first. None: both axes are as long.
    """
    batch = inside[1]
    return None if shape[0] == shape[1] == batch else shape[1] == batch


def layout_of(widths: Widths, shape: Sequence[int], layout: str) -> Axes | None:
    """The layout of a tensor of ``shape`` that a block takes or gives; None where it has no positions to speak of.

    ``auto``: channels are second where a convolution or a norm over channels is as wide as that axis, last where a linear layer,
    a LayerNorm, an attention or a recurrent layer is as wide as the last; where both are so, the first layer decides; where
    neither says anything, second in maps and last in tokens.
    """
    if len(shape) not in _USUAL:
        return None
    if layout != "auto":
        known = LAYOUTS[layout]
        return known if known is not None and known.num_axes == len(shape) else None
    if len(shape) == 3 and widths.tokens_first:
        return LAYOUTS["lnc"]
    second, last = shape[1] in widths.of_maps[len(shape)], shape[-1] in widths.of_tokens
    if second and (widths.begins_with_maps or not last):
        return LAYOUTS[_CHANNELS_FIRST[len(shape)]]
    if last:
        return LAYOUTS[_CHANNELS_LAST[len(shape)]]
    return LAYOUTS[_USUAL[len(shape)]]


def batch_first(tensor: Tensor, layout: Axes) -> tuple[Tensor, int]:
    """The tensor with the batch first, no copy, and which axis then holds the channels."""
    return tensor.movedim(layout.batch_axis, 0), max(layout.channel_axis, 1)


def grid_of(tensor: Tensor, channel_axis: int) -> tuple[int, ...]:
    """Sizes of the axes of positions of a tensor with the batch first."""
    return tuple(size for axis, size in enumerate(tensor.shape) if axis not in (0, channel_axis))


def positions_of(grid: Sequence[int]) -> int:
    """Number of positions."""
    count = 1
    for size in grid:
        count *= size
    return count


def on_grid(tensor: Tensor, channel_axis: int, grid: tuple[int, ...]) -> tuple[Tensor, int]:
    """A map with the batch first, on another grid of positions: averaged where that is coarser, interpolated where finer.

    Tokens (channels last) are a map row by row where their numbers on both sides are squares, or where the other side is a map
    and they are as many as on a map of its proportions; a class token in front of both squares stays what it is. Other tokens,
    and series (channels second), are one row.
    """
    here = grid_of(tensor, channel_axis)
    if here == grid:
        return tensor, channel_axis
    maps = tensor.movedim(channel_axis, 1)
    is_tokens = channel_axis != 1 and len(here) == len(grid) == 1
    if is_tokens and _side_of(here[0] - 1) and _side_of(grid[0] - 1):
        patches, _ = on_grid(tensor[:, 1:], channel_axis, (grid[0] - 1,))
        return torch.cat([maps[:, :, :1], patches], dim=2), 1
    folded, wanted = (_folded(*pair, is_tokens=is_tokens) for pair in ((here, grid), (grid, here)))
    if len(folded) != len(wanted):
        folded, wanted = (positions_of(here),), (positions_of(grid),)
    resized = _resized(maps.reshape(*maps.shape[:2], *folded), wanted)
    return resized.reshape(*resized.shape[:2], *grid), 1


def _folded(grid: tuple[int, ...], other: tuple[int, ...], *, is_tokens: bool) -> tuple[int, ...]:
    """The grid itself, or that of the map whose rows stand behind each other in it."""
    if len(grid) != 1:
        return grid
    (count,) = grid
    if len(other) > 1:
        scale = (count / positions_of(other)) ** (1 / len(other))
        sides = tuple(round(scale * size) for size in other)
        return sides if positions_of(sides) == count else grid
    side = _side_of(count) if is_tokens and _side_of(positions_of(other)) else None
    return (side, side) if side else grid


def _side_of(count: int) -> int | None:
    """Side of the square of so many positions, if there is one."""
    side = math.isqrt(max(count, 0))
    return side if side * side == count else None


def _resized(maps: Tensor, grid: tuple[int, ...]) -> Tensor:
    here = tuple(maps.shape[2:])
    if here == grid:
        return maps
    if all(new <= old for new, old in zip(grid, here, strict=True)):
        pool = (functional.adaptive_avg_pool1d, functional.adaptive_avg_pool2d, functional.adaptive_avg_pool3d)
        return pool[len(grid) - 1](maps, grid)  # pyright: ignore[reportArgumentType]
    mode = ("linear", "bilinear", "trilinear")[len(grid) - 1]
    return functional.interpolate(maps, size=grid, mode=mode, align_corners=False)


def called(network: nn.Module, example: object) -> object:
    """What the network says about an example: one argument, a tuple of them, or a dict of keywords."""
    if isinstance(example, Mapping):
        return network(**cast(Mapping[str, Any], example))
    return network(*cast(tuple[Any, ...], example)) if isinstance(example, tuple) else network(example)


def first_of(layer: nn.Module, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The first argument of a call, in the order of the definition of ``forward``."""
    if arguments or not keywords:
        return arguments[0] if arguments else None
    order = inspect.signature(layer.forward).parameters
    return keywords[next((name for name in order if name in keywords), next(iter(keywords)))]


def the_tensor(value: Any, widths: Widths, layout: str) -> Tensor | None:
    """The tensor that a block takes or gives, with a number type that has gradients.

    Of several, those that differ in their channels alone are put together, as the layers of a DenseNet do; else the first counts.
    """
    tensors = [each for each in _tensors_in(value) if each.is_floating_point()]
    if not tensors:
        return None
    first = tensors[0]
    axes = layout_of(widths, first.shape, layout)
    if len(tensors) > 1 and isinstance(value, list) and axes is not None:
        others = [[size for axis, size in enumerate(tensor.shape) if axis != axes.channel_axis] for tensor in tensors]
        if all(shape == others[0] for shape in others):
            return torch.cat(tensors, dim=axes.channel_axis)
    return first


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (each for each in value.values() if isinstance(each, Tensor))
    elif isinstance(value, list | tuple):
        yield from (each for each in cast(Sequence[Any], value) if isinstance(each, Tensor))


def takes_part() -> bool:
    """Whether a forward pass counts: with gradients, not traced, and none that checkpointing repeats within a backward pass."""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return torch.is_grad_enabled() and (current is None or current() == -1) and not is_traced()


def is_traced() -> bool:
    """Whether a forward pass is made to write the network down, for ``torch.export``, ``torch.jit`` or ONNX."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
