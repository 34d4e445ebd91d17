"""Which axis of a feature map holds the channels, and the average over all others."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated, NamedTuple

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from crossgraft.errors import UsageError

_CHANNEL_AXIS_OF_FORMAT = {"NCHW": 1, "NHWC": 3, "NCL": 1, "NLC": 2}
_USUAL_CHANNEL_AXIS = {2: 1, 3: 2, 4: 1}
_WIDTH_ATTRIBUTES = ("head_hidden_size", "num_features", "embed_dim")


class ChannelLayout(NamedTuple):
    """How the output of a network is to be read.

    Attributes:
        channel_axis: Axis of the d features.
        num_prefix_tokens: Class and register tokens in front of the patch tokens; they are no positions.
    """

    channel_axis: Annotated[int, Field(ge=1, le=3)]
    num_prefix_tokens: Annotated[int, Field(ge=0)] = 0


def find_layout(module: nn.Module, shape: Sequence[int]) -> ChannelLayout:
    """Read the layout of outputs like one of ``shape`` off what the network says about itself.

    The axis is what ``output_fmt`` states (timm's word, for example ``NHWC`` of Swin), as long as that does not
    contradict the network's width ``head_hidden_size`` or ``num_features``; else the only axis as long as that
    width; else the usual one: (n, t, d) and (n, d, h, w).

    Raises:
        UsageError: The output has another number of dimensions.
    """
    if len(shape) not in _USUAL_CHANNEL_AXIS:
        raise UsageError(f"Penultimate features must be (n, d), (n, t, d) or (n, d, h, w); the network returned {tuple(shape)}.")
    axis = _channel_axis(module, shape)
    prefix = getattr(module, "num_prefix_tokens", 0)
    has_prefix = len(shape) == 3 and axis == 2 and isinstance(prefix, int) and shape[1] > prefix
    return ChannelLayout(axis, prefix if has_prefix else 0)


def _channel_axis(module: nn.Module, shape: Sequence[int]) -> int:
    usual = _USUAL_CHANNEL_AXIS[len(shape)]
    widths = {width for name in _WIDTH_ATTRIBUTES if isinstance(width := getattr(module, name, None), int)}
    fitting = [axis for axis in range(1, len(shape)) if shape[axis] in widths]
    stated = getattr(module, "output_fmt", None)
    stated = str(stated.value if isinstance(stated, Enum) else stated)
    declared = _CHANNEL_AXIS_OF_FORMAT.get(stated, usual) if len(stated) == len(shape) else usual
    if declared in fitting or len(fitting) != 1:
        return declared
    return fitting[0]


def mean_over_positions(output: Tensor, layout: ChannelLayout) -> Float[Tensor, "num_samples num_features"]:
    """Average tokens (n, t, d) or feature maps over their positions; vectors (n, d) stay as they are."""
    positions = [axis for axis in range(1, output.ndim) if axis != layout.channel_axis]
    if not positions:
        return output
    if layout.num_prefix_tokens:
        output = output[:, layout.num_prefix_tokens :]
    return output.mean(dim=positions)
