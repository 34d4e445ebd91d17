"""Algorithm 1 as it is printed: blocks are decorated, and the first forward pass shows what network they are in.

An optimiser is made before that pass, when nobody knows how wide the reconstructors are. So each block holds their parameters as
empty ones from the beginning, and they are filled in place.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from crossgraft.errors import UsageError
from crossgraft.models.layers import CONTAINERS
from crossgraft.models.taps import unwrapped
from crossgraft.tune.sim.layouts import takes_part
from crossgraft.tune.sim.reconstructor import Reconstructor
from crossgraft.tune.sim.watching import refuse_replicas

CHILD = "sim_reconstructor"
"""Name of a reconstructor among the children of its block, so that ``model.parameters()`` has it."""

WEIGHT = 1.0
"""Factor of ``model.sim_loss``: the printed loop has a λ of its own."""

_LAYERS = ("adapt", "projector.0", "projector.2", "projector.4", "predictor")

Begin = Callable[[nn.Module, tuple[object, ...]], None]


class Awaited(nn.Module):
    """The parameters of a reconstructor whose widths are not known yet: empty, and in no state dict."""

    def __init__(self) -> None:
        super().__init__()
        for layer in _LAYERS:
            for kind in ("weight", "bias"):
                self.register_parameter(_flat(f"{layer}.{kind}"), nn.Parameter(torch.empty(0)))
        _awaited.add(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy waits, too."""
        super().__setstate__(state)
        _awaited.add(self)

    def fill(self, reconstructor: Reconstructor) -> None:
        """Give the reconstructor these parameters, with its own values in them."""
        for name, drawn in [*reconstructor.named_parameters()]:
            held = self.get_parameter(_flat(name))
            held.data = drawn.data
            layer, _, kind = name.rpartition(".")
            setattr(reconstructor.get_submodule(layer), kind, held)

    def _save_to_state_dict(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    def _load_from_state_dict(self, *_: Any, **__: Any) -> None:
        """Nothing: weights of a network without ρSIM are loaded as into any other."""


_awaited: weakref.WeakSet[Awaited] = weakref.WeakSet()
_handle: list[Any] = []
_seen_without: weakref.WeakSet[nn.Module] = weakref.WeakSet()


def _flat(name: str) -> str:
    return name.replace(".", "_")


def await_network(block: nn.Module, begin: Begin) -> None:
    """Let a decorated block hold the parameters of its reconstructor until a forward pass shows its network.

    Args:
        block: At the end of its constructor.
        begin: Called with the network, and what it takes, before its first forward pass with gradients.
    """
    if isinstance(block, CONTAINERS) or CHILD in block._modules:  # a container would run it; that of a base class is there
        return
    block.add_module(CHILD, Awaited())
    if not _handle:
        _handle.append(register_module_forward_pre_hook(_Watch(begin)))


class _Watch:
    """Looks at every call of a module while blocks wait; the first one around them is their network."""

    def __init__(self, begin: Begin) -> None:
        self._begin = begin

    def __call__(self, module: nn.Module, arguments: Any) -> None:
        """Before a forward pass."""
        if not _awaited:
            while _handle:
                _handle.pop().remove()
            return
        if not takes_part() or module in _seen_without:
            return
        if not any(isinstance(part, Awaited) for part in module.modules()):
            _seen_without.add(module)
            return
        if unwrapped(module) is not module:  # which calls the network in a moment
            refuse_replicas(module)
            return
        if isinstance(module._modules.get(CHILD), Awaited):  # a block on its own, which is no network
            return
        if not any(isinstance(each, Tensor) for each in arguments):
            raise UsageError(
                "Blocks of this network are decorated by init_SIM, and its first call shows no tensor without a keyword. Say "
                "model = init_SIM(model, example=…) before the optimiser is made, or strip(model)."
            )
        self._begin(module, cast("tuple[object, ...]", arguments))


def take_out(network: nn.Module) -> dict[nn.Module, Awaited]:
    """Each block of a network that waits → the parameters that it held; nothing waits in it any more."""
    taken: dict[nn.Module, Awaited] = {}
    for part in [*network.modules()]:
        if isinstance(waiting := part._modules.get(CHILD), Awaited):
            _awaited.discard(waiting)
            del part._modules[CHILD]
            taken[part] = waiting
    return taken
