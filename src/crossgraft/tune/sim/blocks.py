"""Which modules of a network are its blocks, by what a person says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
from torch import nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.blocks import building_blocks
from crossgraft.paths import shortened

Block = str | type[nn.Module] | nn.Module
Blocks = Block | Sequence[Block]
AUTO = "auto"
_WRAPPED = "_orig_mod"
"""Where ``torch.compile`` keeps what it wraps."""


def named_blocks(network: nn.Module, blocks: Blocks) -> dict[str, nn.Module]:
    """The blocks by name, in the order of definition; each module once, and one that ``torch.compile`` wraps as if it did not.

    Args:
        network: Not wrapped.
        blocks: ``auto``; a module, a name of one or of a class of modules, or a class; or several of these.

    Raises:
        UnknownNameError: No module and no class of modules has that name; the message gives the nearest ones.
        UsageError: There is no block, a module is not of this network, or the network can have no hooks or no values.
    """
    if not isinstance(cast("Any", network), nn.Module):
        raise UsageError(f"rho_sim takes a network (torch.nn.Module), found {type(network).__name__}.")
    _refuse_what_cannot_be_watched(network)
    modules = {_plain(name): module for name, module in network.named_modules() if name}
    if blocks == AUTO:
        chosen = {_plain(name) for name in building_blocks(network)}
    else:
        several = [blocks] if isinstance(blocks, str | type | nn.Module) else _several(blocks)
        chosen = {name for each in several for name in _named(modules, each)}
    found = {name: module for name, module in modules.items() if name in chosen}
    if not found:
        raise UsageError("rho_sim finds no block in this network. Name some: blocks=NAME, or a class of modules.")
    return found


def _several(blocks: Any) -> list[Block]:
    found = list(cast("Iterable[Any]", blocks)) if isinstance(blocks, Iterable) else [blocks]
    if all(isinstance(each, str | type | nn.Module) for each in found):
        return found
    raise UsageError(
        f"blocks of rho_sim must be auto, names, modules or classes of modules, found {shortened(repr(blocks))}."
    )


def _refuse_what_cannot_be_watched(network: nn.Module) -> None:
    compiled = next((name or "the network" for name, part in network.named_modules() if _is_script(part)), None)
    if compiled is not None:
        raise UsageError(
            f"torch.jit has compiled {compiled}, which cannot have hooks. Give rho_sim the network as it was before torch.jit."
        )
    if any(each.is_meta for each in network.parameters()):
        raise UsageError(
            "The network is on the meta device, where tensors have no values. Load its weights onto a device before rho_sim."
        )


def _is_script(module: nn.Module) -> bool:
    return isinstance(module, torch.jit.ScriptModule)


def _plain(name: str) -> str:
    """Without the wrappers of parts that were compiled one by one."""
    return ".".join(part for part in name.split(".") if part != _WRAPPED)


def _named(modules: dict[str, nn.Module], block: Block) -> list[str]:
    if isinstance(block, nn.Module):
        found = [name for name, module in modules.items() if module is block]
        if not found:
            raise UsageError(f"A block of rho_sim, a {type(block).__name__}, is no module of the network.")
        return found
    if not isinstance(block, str):
        found = [name for name, module in modules.items() if isinstance(module, block)]
        if not found:
            raise UnknownNameError(
                "class of blocks", block.__name__, {type(each).__name__ for each in modules.values()}
            )
        return found
    if _plain(block) in modules:
        return [_plain(block)]
    found = [name for name, module in modules.items() if type(module).__name__ == block]
    if not found:
        raise UnknownNameError("block", block, [*modules, *{type(each).__name__ for each in modules.values()}])
    return found
