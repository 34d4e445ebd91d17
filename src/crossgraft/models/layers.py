"""The layers of any network that have an activation."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager

from torch import Tensor, nn

from crossgraft.models.blocks import CONTAINERS, count_parameters
from crossgraft.models.taps import watch

_WITHOUT_EFFECT = (nn.Identity, nn.Dropout, nn.Dropout2d)
# A module with nearly all parameters is the network behind another name (an encoder, a wrapper), not one of its blocks.
_NEARLY_ALL = 0.9


def main_layers(module: nn.Module, gives_tensor: Collection[str]) -> tuple[str, ...]:
    """Names of the building blocks in the order of definition: containers are opened, blocks are not.

    For a ResNet: ``conv1, bn1, …, layer1.0, layer1.1, …, fc``; for a ViT: ``patch_embed, blocks.0, …, norm,
    head``. Every one has an activation: a block that returns several tensors, that the network reaches into
    instead of calling it, or that holds nearly all parameters is opened like a container, and a layer that does not
    run is left out.

    Args:
        module: The network.
        gives_tensor: From ``observe_layers`` around one forward pass.
    """
    names: list[str] = []
    large = _NEARLY_ALL * count_parameters(module)

    def walk(parent: nn.Module, prefix: str) -> None:
        for name, child in parent.named_children():
            path = prefix + name
            if isinstance(child, _WITHOUT_EFFECT):
                continue
            found = len(names)
            is_container = isinstance(child, CONTAINERS) and len(child) > 0
            if is_container or path not in gives_tensor or count_parameters(child) > large:
                walk(child, f"{path}.")
            if len(names) == found and path in gives_tensor and not isinstance(child, CONTAINERS):
                names.append(path)

    walk(module, "")
    return tuple(names)


@contextmanager
def observe_layers(module: nn.Module) -> Generator[set[str]]:
    """Fill a set with the names of all layers that run inside the block and whose last output is one tensor."""
    seen: set[str] = set()

    def note(name: str, output: object) -> None:
        (seen.add if isinstance(output, Tensor) else seen.discard)(name)

    with watch({name: layer for name, layer in module.named_modules() if name}, note):
        yield seen
