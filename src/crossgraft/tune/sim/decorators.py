"""The names of the paper (algorithm 1) for the same engine: ``init_SIM``, ``forward_with_SIM``, ``model.sim_loss``, ``strip``.

As printed: blocks are decorated, and λ is yours.

>>> import torch
>>> class Block(torch.nn.Module):
...     @init_SIM()  # step 1
...     def __init__(self, in_channels, out_channels):
...         super().__init__()
...         self.layer = torch.nn.Conv2d(in_channels, out_channels, 3)
...
...     @forward_with_SIM()  # step 2
...     def forward(self, maps):
...         return self.layer(maps).relu()
>>> images = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
>>> model = torch.nn.Sequential(Block(3, 4), Block(4, 4))
>>> optimizer = torch.optim.Adam(model.parameters())  # has those of the reconstructors
>>> loss = model(images).square().mean() + 0.005 * model.sim_loss  # step 3
>>> list(strip(model).state_dict())
['0.layer.weight', '0.layer.bias', '1.layer.weight', '1.layer.bias']

With options, and for networks that nobody decorated; λ is then inside:

>>> model = init_SIM(model, example=images, rho=0.5, weight=0.005)
>>> loss = model(images).square().mean() + model.sim_loss
"""

from __future__ import annotations

import copy
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast, overload

import torch
from torch import Tensor, nn

from crossgraft.errors import CrossgraftError, CrossgraftWarning, UsageError
from crossgraft.models.layers import CONTAINERS
from crossgraft.models.taps import modes_kept, unwrapped
from crossgraft.paths import shortened
from crossgraft.tune.sim.as_printed import CHILD, WEIGHT, Awaited, await_network, take_out
from crossgraft.tune.sim.layouts import called, is_traced
from crossgraft.tune.sim.reconstructor import Reconstructor
from crossgraft.tune.sim.rho_sim import RhoSim
from crossgraft.tune.sim.watching import Hook, carries_reconstructors, take_hooks_off

_SIM, _MARK = "_sim", "_is_sim_block"
_SAME = 1e-4
"""Distance of binary logarithms below which two factors are one."""
_Network = TypeVar("_Network", bound=nn.Module)
_Function = Callable[..., Any]


@overload
def init_SIM() -> Callable[[_Function], _Function]: ...
@overload
def init_SIM(model: _Network, *, example: object, **options: Any) -> _Network: ...
def init_SIM(model: nn.Module | None = None, *, example: object = None, **options: Any) -> Any:  # noqa: N802 - the paper's
    """Step 1: without a model, a decorator of a block's ``__init__``; with one, the model itself with ``sim_loss``.

    Decorated blocks need no more: before its first forward pass with gradients the network that they are in gets ``sim_loss``,
    without a weight, since the printed loop has a λ of its own. With a model there are options, and λ is one of them. Its blocks
    are those whose class was decorated, where there are any, else those of ``blocks``. The reconstructors are among
    its parameters until ``strip``, so that an optimiser of ``model.parameters()`` trains them.

    Args:
        model: Any network.
        example: What it takes (a tensor, a tuple or a dict), for a look at the widths of the blocks.
        options: Those of ``RhoSim``; ``weight`` is inside ``sim_loss`` already.

    Raises:
        UsageError: The model is wrapped or has ρSIM already, a block lacks ``forward_with_SIM``, or as ``RhoSim``.
        UnknownNameError: As ``RhoSim``.
    """
    if model is not None and not isinstance(cast("Any", model), nn.Module):
        raise UsageError(f"init_SIM takes a network, got {type(model).__name__}. As a decorator it has parentheses: @init_SIM().")
    if model is None:
        if example is not None or options:
            raise UsageError("Options of init_SIM go with the network: init_SIM(model, example=images, rho=0.2).")
        return _marked
    if example is None:
        raise UsageError(
            "init_SIM needs an example of what the network takes (example=images), because an optimiser of model.parameters() "
            "must find the reconstructors."
        )
    if unwrapped(model) is not model:
        raise UsageError(
            "init_SIM puts reconstructors into the network itself. Call it before the network is compiled or made parallel, "
            "and wrap what it returns."
        )
    if carries_sim(model, waiting=False):
        raise UsageError("This network has rho_sim already. Call strip(model) first.")
    blocks = _decorated(model)
    if blocks and "blocks" in options:
        raise UsageError(
            f"The blocks of this network are decorated already ({shortened(', '.join(blocks))}). Leave blocks= out, or the "
            "decorators."
        )
    _begin(model, blocks, example, options)
    return model


def _begin(model: nn.Module, blocks: list[str], example: object, options: dict[str, Any]) -> RhoSim:
    """Put reconstructors into a network, and ``sim_loss`` on it."""
    held = take_out(model)
    sim = RhoSim(model, **({"blocks": blocks} if blocks else {}), example=example, **options)
    for name in sim.blocks:
        if isinstance(model.get_submodule(name), CONTAINERS):
            sim.detach()
            raise UsageError(
                f"The block {name} is a container, which would run its reconstructor as a layer. Name blocks inside it, or use "
                "RhoSim, which puts nothing into the network."
            )
    for name, reconstructor in sim.reconstructors.by_block().items():
        block = model.get_submodule(name)
        if block in held:
            held[block].fill(reconstructor)
        block.add_module(CHILD, reconstructor)
    model.__dict__[_SIM] = _Kept(sim)
    model.__class__ = _dressed(type(model))
    return sim


def _as_printed(model: nn.Module, arguments: tuple[object, ...]) -> None:
    """The network of decorated blocks is called for the first time, and nobody called ``init_SIM`` with it."""
    blocks = _decorated(model)
    sim = _begin(model, blocks, arguments, {"weight": WEIGHT})
    sim.call_begins(arguments)


def _decorated(model: nn.Module) -> list[str]:
    """Names of the blocks that have both decorators.

    Raises:
        UsageError: One has only the first.
    """
    blocks = [name for name, block in model.named_modules() if name and getattr(block, _MARK, False)]
    for name in blocks:
        if not getattr(type(model.get_submodule(name)).forward, _MARK, False):
            raise UsageError(f"The block {name} lacks step 2: put @forward_with_SIM() above its forward.")
    return blocks


def _marked(constructor: _Function) -> _Function:
    @functools.wraps(constructor)
    def wrapper(self: nn.Module, *arguments: Any, **keywords: Any) -> None:
        constructor(self, *arguments, **keywords)
        self.__dict__[_MARK] = True
        await_network(self, _as_printed)

    return wrapper


def forward_with_SIM(*misplaced: object) -> Callable[[_Function], _Function]:  # noqa: N802 - the paper's
    """Step 2: a decorator of a block's ``forward``; what it takes and gives is looked at by hooks, and stored nowhere on it.

    Raises:
        UsageError: It has no parentheses, or something in them.
    """
    if misplaced:
        raise UsageError("forward_with_SIM takes nothing, and has parentheses: @forward_with_SIM().")

    def decorate(forward: _Function) -> _Function:
        @functools.wraps(forward)
        def wrapper(self: nn.Module, *arguments: Any, **keywords: Any) -> Any:
            return forward(self, *arguments, **keywords)

        setattr(wrapper, _MARK, True)
        return wrapper

    return decorate


def strip(model: _Network, *, example: object = None) -> _Network:
    """The network without reconstructors, hooks and ``sim_loss``: keys and outputs of one that never had them.

    Args:
        model: After ``init_SIM``, a copy of such a network, or one that ``RhoSim`` watches.
        example: What it takes; given, its outputs before and after are compared.

    Raises:
        CrossgraftError: The outputs for the example differ.
        UsageError: The model is no module.
    """
    if not isinstance(cast("Any", model), nn.Module):
        raise UsageError(f"strip takes a network, got {type(model).__name__}.")
    before = _outputs(model, example)
    for part in model.modules():
        take_hooks_off(part)
    for part in [part for part in model.modules() if isinstance(part, _Dressed)]:
        part.__class__ = type(part).__bases__[1]
        kept = part.__dict__.pop(_SIM)
        if kept.sim is not None:
            kept.sim.detach()
    take_out(model)
    for part in list(model.modules()):
        if isinstance(part._modules.get(CHILD), Reconstructor):
            del part._modules[CHILD]
    after = _outputs(model, example)
    if len(before) != len(after) or not all(torch.equal(one, other) for one, other in zip(before, after, strict=True)):
        raise CrossgraftError("The network says something else without its reconstructors. Please report this.")
    return model


def carries_sim(network: nn.Module, *, waiting: bool = True) -> bool:
    """Whether reconstructors are inside the network (or ``waiting`` for its first forward pass), or ρSIM watches it."""
    return any(
        isinstance(part, _Dressed | Reconstructor)
        or (waiting and isinstance(part, Awaited))
        or any(isinstance(hook, Hook) for hook in (*part._forward_hooks.values(), *part._forward_pre_hooks.values()))
        for part in network.modules()
    )


def refuse_unstripped(network: nn.Module, what: str) -> None:
    """Let no reconstructor into a file that is for others.

    Args:
        network: About to be written, or to be trained and then written.
        what: Its name, at the beginning of a sentence.

    Raises:
        UsageError: ρSIM is on it.
    """
    if carries_sim(network):
        raise carries_reconstructors(what)


class _Kept:
    """The engine of a network, and its last term; a copy of the network has neither."""

    def __init__(self, sim: RhoSim | None) -> None:
        self.sim = sim
        self.term: Tensor | None = None
        self._has_looked = False

    def notice_second_weight(self) -> None:
        """Look once, in the backward pass, whether the term is multiplied by its own weight again.

        Warns:
            CrossgraftWarning: It is, up to a power of two, by which scalers of gradients and parts of a batch multiply, too.
        """
        weight = 1.0 if self.sim is None else self.sim.weight
        if self._has_looked or self.term is None or not self.term.requires_grad or weight <= 0 or not math.log2(weight) % 1:
            return
        self._has_looked = True

        def look(factor: Tensor) -> None:
            of_weight = float(factor) / weight
            if of_weight > 0 and abs(math.remainder(math.log2(of_weight), 1)) < _SAME:
                warnings.warn(
                    f"The loss multiplies model.sim_loss by {weight:g}, which is inside it already: {weight * weight:g} in all. "
                    "Leave the factor out, or say weight=1 to init_SIM.",
                    CrossgraftWarning,
                    stacklevel=2,
                )

        self.term.register_hook(look)

    def __deepcopy__(self, memo: Any) -> _Kept:
        return _Kept(None)


class _Dressed:
    """What ``init_SIM`` adds to the class of a network."""

    @property
    def sim_loss(self) -> Tensor:
        """The weighted term of the last forward pass, as often as it is read.

        Raises:
            UsageError: As ``RhoSim.loss``; or this is a copy of the network that ``init_SIM`` was called with.
        """
        kept: _Kept = self.__dict__[_SIM]
        if kept.sim is None:
            raise UsageError("This is a copy of a network with rho_sim. Call strip(model), then init_SIM(model, …) for the copy.")
        if kept.term is None or kept.sim.has_begun:
            kept.term = kept.sim.loss()
            kept.notice_second_weight()
        return kept.term

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Refuse to be traced for a file, which would hold the reconstructors."""
        if is_traced():
            raise carries_reconstructors("This network")
        return super().__call__(*arguments, **keywords)  # pyright: ignore[reportAttributeAccessIssue]

    def __deepcopy__(self, memo: Any) -> Any:
        dressed: Any = type(self)
        self.__class__ = dressed.__bases__[1]
        try:
            twin = copy.deepcopy(self, memo)
        finally:
            self.__class__ = dressed
        twin.__class__ = dressed
        return twin

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise carries_reconstructors("This network")


@functools.cache
def _dressed(base: type[nn.Module]) -> type[nn.Module]:
    return type(base.__name__, (_Dressed, base), {"__doc__": base.__doc__, "__module__": base.__module__})


def _outputs(model: nn.Module, example: object) -> list[Tensor]:
    if example is None:
        return []
    with torch.no_grad(), modes_kept(model), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # some draw in evaluation, too
        output: Any = called(model.eval(), example)
    parts = output.values() if isinstance(output, dict) else output if isinstance(output, list | tuple) else [output]
    return [part for part in parts if isinstance(part, Tensor)]
