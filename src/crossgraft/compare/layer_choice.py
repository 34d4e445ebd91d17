"""Which layers of a network are compared, and their outputs as channels by positions."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.compare.networks import ComparedNetwork
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.features.passes import run_pass
from crossgraft.models.blocks import building_blocks
from crossgraft.models.layers import main_layers, observe_layers
from crossgraft.models.positions import find_layout, mean_over_positions
from crossgraft.models.taps import named_layer

MOST_LAYERS = 12
"""Layers of each network that are compared where nobody names any, spread evenly from the first to the last."""


def choose_layers(network: ComparedNetwork, asked: Sequence[str] | None) -> list[str]:
    """Names of the layers that are compared, first to last.

    Args:
        network: The network.
        asked: What the user named; None: building blocks (of a network without any: all layers), at most ``MOST_LAYERS``.

    Raises:
        UnknownNameError: There is no such layer; the message gives the nearest names.
        UsageError: A layer is named twice.

    Cost: a forward pass of one image where nobody names any.
    """
    if asked:
        for name in asked:
            _refuse_unknown(network, name)
        if len(set(asked)) != len(asked):
            raise UsageError(f"Name each layer once; got {', '.join(asked)}.")
        return list(asked)
    with observe_layers(network.body) as gives_tensor:
        next(run_pass(network.module, [network.probe()], read=network.run, like=network.weight))
    gives_tensor.discard(network.head or "")
    layers = [name for name in building_blocks(network.body) if name in gives_tensor]
    layers = layers if len(layers) > 1 else list(main_layers(network.body, gives_tensor))
    return spread(layers, MOST_LAYERS)


def spread(names: Sequence[str], most: int) -> list[str]:
    """At most ``most`` of them, evenly from the first to the last."""
    if len(names) <= most:
        return list(names)
    return [names[round(place * (len(names) - 1) / (most - 1))] for place in range(most)]


def map_shapes(network: ComparedNetwork, layers: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Channels, height and width of what each layer gives.

    Cost: a forward pass of one image.
    """
    [(_, found)] = run_pass(network.module, [network.probe()], read=network.reader(list(layers)), like=network.weight)
    shapes: dict[str, tuple[int, int, int]] = {}
    for name, output in found.items():
        channels, height, width = (int(size) for size in as_maps(output, network.body).shape[1:])
        shapes[name] = channels, height, width
    return shapes


def as_maps(output: Tensor, body: nn.Module) -> Float[Tensor, "num_images channels height width"]:
    """What a layer gives, channels first: maps as they are, tokens in one column (class and register tokens left out)."""
    layout = find_layout(body, output.shape)
    if output.ndim == 2:
        return output[:, :, None, None]
    if output.ndim == 3:
        tokens = output if layout.channel_axis == 2 else output.transpose(1, 2)
        return tokens[:, layout.num_prefix_tokens :].transpose(1, 2)[..., None]
    return output if layout.channel_axis == 1 else output.movedim(layout.channel_axis, 1)


def pooled(output: Tensor, body: nn.Module, pool: str) -> Float[Tensor, "num_images num_features"]:
    """One row per image: the mean over positions, or all channels of all positions."""
    if pool == "flatten":
        return output.flatten(1)
    return mean_over_positions(output, find_layout(body, output.shape))


def _refuse_unknown(network: ComparedNetwork, name: str) -> None:
    try:
        named_layer(network.body, name)
    except UnknownNameError as error:
        raise UnknownNameError(
            f"layer of {network.name}", name, [known for known, _ in network.body.named_modules() if known]
        ) from error
