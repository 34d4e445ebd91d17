"""Which layers get task-specific adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from torch import nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapters.lora_targets import BETWEEN_TARGETS, fits_target
from crossgraft.models.adapters.tsa import why_no_tsa
from crossgraft.models.blocks import building_blocks

Predicate = Callable[[str, nn.Module], bool]
AUTO, MIDDLE = "auto", "middle"
_NUM_STAGES = (3, 4)


def find_layers(network: nn.Module, layers: str | Predicate, connection: str) -> list[str]:
    """Names of the layers to adapt.

    Args:
        network: A backbone.
        layers: ``auto``: convolutions larger than one pixel in the building blocks, which leaves the stem and the 1 × 1
            convolutions of shortcuts as they are; in a network without them its linear layers. ``middle``: the same in the second
            and third stage, ``layer2`` and ``layer3`` of a ResNet; without three or four stages in the second and third quarter
            of the blocks. Or names, globs and types with ``+`` between them, or a function of name and module.
        connection: ``residual`` or ``serial``.

    Raises:
        UnknownNameError: A part of ``layers`` fits no layer.
        UsageError: There is nothing to adapt.
    """
    usable = {name: layer for name, layer in network.named_modules() if why_no_tsa(layer, connection) is None}
    if not callable(layers) and not isinstance(cast("Any", layers), str):
        raise UsageError(f"layers of TSA must be text (NAME+NAME) or a function of name and module, got {layers!r}.")
    if callable(layers):
        found = [name for name, layer in usable.items() if layers(name, layer)]
    elif layers in (AUTO, MIDDLE):
        blocks = building_blocks(network)
        found = _in_blocks(usable, blocks if layers == AUTO else _middle_of(network, blocks))
    else:
        found = _named(usable, layers)
    if not found:
        raise UsageError(
            f"TSA finds no layer to adapt in this {type(network).__name__}. Name some: layers=NAME+NAME, or layers=Conv2d."
        )
    return found


def _middle_of(network: nn.Module, blocks: Sequence[str]) -> Sequence[str]:
    """Those of the second and third stage: a stage is a row of blocks that one module holds."""
    stages = [list(stage) for _, stage in groupby(blocks, key=lambda block: block.rpartition(".")[0])]
    are_bare_layers = not all(any(network.get_submodule(block).children()) for block in blocks)
    if len(stages) in _NUM_STAGES and not are_bare_layers:
        return [*stages[1], *stages[2]]
    return blocks[round(0.25 * len(blocks)) : max(1, round(0.75 * len(blocks)))]


def _in_blocks(usable: Mapping[str, nn.Module], blocks: Sequence[str]) -> list[str]:
    inside = {
        name: layer
        for name, layer in usable.items()
        if any(name == block or name.startswith(f"{block}.") for block in blocks)
    }
    wide = [name for name, layer in inside.items() if isinstance(layer, nn.Conv2d) and max(layer.kernel_size) > 1]
    return wide or [name for name, layer in inside.items() if isinstance(layer, nn.Linear)]


def _named(usable: Mapping[str, nn.Module], layers: str) -> list[str]:
    found: dict[str, None] = {}
    for target in (part.strip() for part in layers.split(BETWEEN_TARGETS)):
        fitting = [name for name, layer in usable.items() if fits_target(name, layer, target)]
        if not fitting:
            raise UnknownNameError("layer", target, {*usable, *(type(layer).__name__ for layer in usable.values())})
        found |= dict.fromkeys(fitting)
    return list(found)
