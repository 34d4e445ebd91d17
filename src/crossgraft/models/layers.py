"""The layers of any network that have an activation."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager

from torch import Tensor, nn

from crossgraft.models.taps import only_tensor, watch

# The building blocks of a network, first to last: what "the last three blocks" means.
#
# A block is a module of its own class with at least two learned layers: a transformer block, a residual block, a dense
# layer, a fire module. Containers are opened, and so is a stage: a module whose own class only holds a list of blocks
# (ConvNeXt, Swin, RegNet). The blocks of all stages stand in one row. A patch embedding, a stem and a merging of patches have
# one learned layer and are no blocks. A network without such modules (VGG, Conv-4) is a row of convolutions and linear
# layers, and each of them is a block.

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
# A stage holds next to nothing besides its blocks and the step between two stages; a block whose list of equal parts is
# only one of its branches stays whole.
_MOST = 0.5


def building_blocks(module: nn.Module) -> tuple[str, ...]:
    """Names of the blocks in the order of definition; empty for a network without learned layers.

    Cost: one walk over the modules, no forward pass.
    """
    prefix = ""
    while (only := _only_part(module)) is not None:
        prefix, module = f"{prefix}{only}.", module.get_submodule(only)
    listed = _walk(module, prefix, inside_list=False)
    in_lists = [name for name, inside_list in listed if inside_list]
    if in_lists:
        return tuple(in_lists)
    if len(listed) > 1:
        return tuple(name for name, _ in listed)
    return tuple(prefix + name for name, layer in module.named_modules() if _is_learned_layer(layer))


def parameter_depths(names: Iterable[str], blocks: Sequence[str]) -> dict[str, int]:
    """How deep each parameter lies: 0 in front of the first block, i + 1 from block i on, the number of blocks + 1 behind.

    What is defined between two blocks (a transition, a merging of patches) goes with the block in front of it.

    Args:
        names: Names of all parameters, in the order of definition, in which networks run.
        blocks: Blocks from ``building_blocks``, with the same prefix as ``names``.
    """
    names = list(names)
    owners = [next((i for i, block in enumerate(blocks) if name.startswith(f"{block}.")), None) for name in names]
    last = max((index for index, owner in enumerate(owners) if owner is not None), default=-1)
    depths: dict[str, int] = {}
    depth = 0
    for index, (name, owner) in enumerate(zip(names, owners, strict=True)):
        if owner is not None:
            depth = owner + 1
        elif index > last:
            depth = len(blocks) + 1
        depths[name] = depth
    return depths


def _only_part(module: nn.Module) -> str | None:
    """The part that has all parameters, where that is a network in another one: it has the same blocks."""
    parts = [(name, child) for name, child in module.named_children() if any(True for _ in child.parameters())]
    if len(parts) != 1 or any(True for _ in module.parameters(recurse=False)) or not any(True for _ in parts[0][1].children()):
        return None
    return None if isinstance(parts[0][1], CONTAINERS) or _is_stage(parts[0][1]) else parts[0][0]


def _walk(parent: nn.Module, prefix: str, *, inside_list: bool) -> list[tuple[str, bool]]:
    """Name of every block below ``parent``, and whether it stands in a list or is an attribute of the network."""
    blocks: list[tuple[str, bool]] = []
    children = list(parent.named_children())
    # of one class either all are stages or none is, so that the last of a row is not larger than the others
    whole = {type(child) for _, child in children if not _is_stage(child)}
    for name, child in children:
        path = prefix + name
        if isinstance(child, CONTAINERS) or type(child) not in whole:
            blocks += _walk(child, f"{path}.", inside_list=True)
        elif not inside_list and _is_wrapper(child, parent):
            blocks += _walk(child, f"{path}.", inside_list=False)
        elif _is_block(child):
            blocks.append((path, inside_list))
    return blocks


def _is_block(module: nn.Module) -> bool:
    return sum(_is_learned_layer(layer) for layer in module.modules()) >= 2


def _is_learned_layer(module: nn.Module) -> bool:
    return any(parameter.ndim >= 2 for name, parameter in module.named_parameters(recurse=False) if name == "weight")


def _is_stage(module: nn.Module) -> bool:
    """Whether the module consists of one list of blocks of one class."""
    large = _MOST * count_parameters(module)
    lists: list[Sequence[nn.Module]] = [list(module.children())]
    lists += [list(child.children()) for child in module.children() if isinstance(child, CONTAINERS)]
    return any(_are_equal_blocks(items) and sum(map(count_parameters, items)) >= large for items in lists)


def _are_equal_blocks(modules: Sequence[nn.Module]) -> bool:
    return (
        len({type(module) for module in modules}) == 1
        and not isinstance(modules[0], CONTAINERS)
        and all(_is_block(module) for module in modules)
    )


def _is_wrapper(child: nn.Module, parent: nn.Module) -> bool:
    """An encoder that is nearly the whole network under another name, and no block of it."""
    is_opened = any(isinstance(layer, CONTAINERS) or _is_stage(layer) for layer in child.children())
    return is_opened and count_parameters(child) > 0.8 * count_parameters(parent)


def count_parameters(module: nn.Module) -> int:
    """All of them, trainable or not."""
    return sum(parameter.numel() for parameter in module.parameters())


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
            num_before = len(names)
            is_container = isinstance(child, CONTAINERS) and len(child) > 0
            if is_container or path not in gives_tensor or count_parameters(child) > large:
                walk(child, f"{path}.")
            if len(names) == num_before and path in gives_tensor and not isinstance(child, CONTAINERS):
                names.append(path)

    walk(module, "")
    return tuple(names)


@contextmanager
def observe_layers(module: nn.Module) -> Generator[set[str]]:
    """Fill a set with the names of all layers that run inside the block and whose last output is one tensor."""
    seen: set[str] = set()

    def note(name: str, output: object) -> None:
        (seen.add if isinstance(only_tensor(output), Tensor) else seen.discard)(name)

    with watch({name: layer for name, layer in module.named_modules() if name}, note):
        yield seen
