"""What the blocks of a network take and give in the forward pass of a training step, as sampled tokens."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.layers import building_blocks
from crossgraft.models.taps import with_wrappers
from crossgraft.paths import shortened
from crossgraft.seeding import torch_generator
from crossgraft.tune.sim.distances import FEWEST_TOKENS, Drawing, drawn_tokens, number_of_tokens, rolled, take_tokens
from crossgraft.tune.sim.layouts import (
    Axes,
    Widths,
    batch_first,
    first_of,
    grid_of,
    has_tokens_first,
    layout_of,
    on_grid,
    positions_of,
    takes_part,
    the_tensor,
    tokens_first_layers,
    widths_of,
)
from crossgraft.tune.sim.options import SimOptions

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
    chosen_modules = {name: module for name, module in modules.items() if name in chosen}
    if not chosen_modules:
        raise UsageError("rho_sim finds no block in this network. Name some: blocks=NAME, or a class of modules.")
    return chosen_modules


def _several(blocks: Any) -> list[Block]:
    listed = list(cast("Iterable[Any]", blocks)) if isinstance(blocks, Iterable) else [blocks]
    if all(isinstance(each, str | type | nn.Module) for each in listed):
        return listed
    raise UsageError(f"blocks of rho_sim must be auto, names, modules or classes of modules, found {shortened(repr(blocks))}.")


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
        names = [name for name, module in modules.items() if module is block]
        if not names:
            raise UsageError(f"A block of rho_sim, a {type(block).__name__}, is no module of the network.")
        return names
    if not isinstance(block, str):
        names = [name for name, module in modules.items() if isinstance(module, block)]
        if not names:
            raise UnknownNameError("class of blocks", block.__name__, {type(each).__name__ for each in modules.values()})
        return names
    if _plain(block) in modules:
        return [_plain(block)]
    names = [name for name, module in modules.items() if type(module).__name__ == block]
    if not names:
        raise UnknownNameError("block", block, [*modules, *{type(each).__name__ for each in modules.values()}])
    return names


class Hook:
    """Tells ``notice`` of the calls of one module, where ``when`` says so.

    A copy of the module has none. What ``torch.compile`` makes of the network calls it uncompiled.

    Args:
        module: Whose calls count.
        notice: Called with arguments, keywords and the output, which is None before the call.
        when: Asked each time.
    """

    def __init__(self, module: nn.Module, notice: Callable[..., object], *, when: Callable[[], bool]) -> None:
        self._module, self._notice, self._when = module, notice, when

    def __call__(self, module: Any, arguments: Any, keywords: Any, output: Any = None) -> None:
        """What torch calls before or after the module."""
        self._tell(module, arguments, keywords, output)  # pyright: ignore[reportCallIssue] - torch's decorator has no types

    @property
    def __name__(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """What ``torch.jit.script`` asks of a hook that it is about to write down.

        Raises:
            UsageError: Always, as one that says that there is no such name.
        """
        raise _ScriptedError(str(carries_reconstructors("This network")))

    @torch.compiler.disable
    def _tell(self, module: nn.Module, arguments: Any, keywords: Any, output: Any) -> None:
        if module is self._module and self._when():
            self._notice(arguments, keywords, output)

    def __deepcopy__(self, memo: dict[Any, Any]) -> _Silent:
        twin = memo.get(id(self._module))
        if isinstance(twin, nn.Module):
            memo.setdefault(_Copying, _Copying()).twins.append(twin)
        return _Silent()

    def __reduce__(self) -> Any:
        raise carries_reconstructors("This network")


class _ScriptedError(UsageError, AttributeError):
    """Also an ``AttributeError``, so that whoever only asks whether there is a name gets an answer."""


class _Silent:
    """What a copy has in its place until it is finished."""

    def __call__(self, *_: Any) -> None:
        return None


class _Copying:
    """Lies in the memo of a copy, which goes when the copy is finished: only then can hooks be taken off the twins."""

    def __init__(self) -> None:
        self.twins: list[nn.Module] = []

    def __del__(self) -> None:
        for twin in self.twins:
            take_hooks_off(twin)


def take_hooks_off(module: nn.Module) -> None:
    """Those of this module, with or without effect."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for number in [number for number, hook in hooks.items() if isinstance(hook, Hook | _Silent)]:
            del hooks[number]
            module._forward_pre_hooks_with_kwargs.pop(number, None)
            module._forward_hooks_with_kwargs.pop(number, None)


def weakly(method: Callable[..., object]) -> Callable[..., None]:
    """Calls a method while its object lives, and does not keep it alive."""
    weak = weakref.WeakMethod(method)

    def call(*arguments: object) -> None:
        if (alive := weak()) is not None:
            alive(*arguments)

    return call


def refuse_replicas(model: nn.Module) -> None:
    """Refuse a wrapper of parallel training, which knows nothing of the reconstructors.

    Raises:
        UsageError: Processes would learn other reconstructors each, or replicas would not be seen.
    """
    layers = with_wrappers(model)
    if any(isinstance(each, DataParallel) for each in layers):
        raise UsageError(
            "rho_sim does not see the replicas that DataParallel runs. Use DistributedDataParallel, or give the network itself "
            "and train it on one device."
        )
    if any(isinstance(each, DistributedDataParallel) for each in layers):
        raise UsageError(
            "DistributedDataParallel does not average the gradients of the reconstructors of rho_sim, so that they would drift "
            "apart. Make RhoSim(network, example=…) first, put network and sim.reconstructors into one module, and wrap that; or "
            "wrap what init_SIM(network, example=…) returned."
        )


def carries_reconstructors(what: str) -> UsageError:
    """The error for writing a network while ρSIM is on it."""
    return UsageError(
        f"{what} carries reconstructors of rho_sim, which turn the features of layers back into what the layers saw: with them, "
        "others come closer to the training images. Take them off first: detach() of RhoSim, or strip(model) after init_SIM."
    )


DOES_NOT_RUN = "it does not run"
NOT_SEEN = "it did not run with gradients: not called, or in a checkpoint with use_reentrant=True"
_TOO_FEW = f"it has fewer than {FEWEST_TOKENS} positions"


@dataclass(frozen=True)
class Seen:
    """One run of a block: the same tokens of what it took, detached, and of what it gave, part of the graph.

    Rows are images, or patches of them.
    """

    block: str
    taken: Float[Tensor, "rows tokens width_in"]
    given: Float[Tensor, "rows tokens width_out"]
    num_images: int


@dataclass
class _Entered:
    """A run of a block that has begun: tokens of the input, or a copy of the input where the output's grid is not known.

    ``run`` counts from 0 in a forward pass; ``inside`` is the shape of what its first layer with the tokens first takes.
    """

    run: int
    shape: tuple[int, ...] = ()
    inside: tuple[int, ...] | None = None
    index: Tensor | None = None
    tokens: Tensor | None = None
    num_images: int = 0
    whole: Tensor | None = None


@dataclass
class _Watched:
    name: str
    layer: nn.Module
    widths: Widths
    grids: dict[tuple[int, ...], tuple[int, ...]] = field(default_factory=dict[tuple[int, ...], tuple[int, ...]])
    entered: list[_Entered] = field(default_factory=list[_Entered])
    runs: int = 0
    inner_handles: list[Any] = field(default_factory=list[Any])


class BlockWatch:
    """Hooks on blocks that take tokens while they are asked to, and leave with ``close``.

    Tokens of the input are taken before the block runs, because it may work in place; those of the output as soon as it has
    run, because the next layer may.

    Args:
        blocks: The blocks by name.
        options: ``rho``, ``sampling``, ``layout`` and ``placebo`` count.

    Attributes:
        skipped: Name of each block of the last forward pass that cannot be reconstructed → why.
        seen: Runs of the last forward pass.
    """

    def __init__(self, blocks: Mapping[str, nn.Module], options: SimOptions) -> None:
        self._options = options
        self._drawing: Drawing | None = None
        self._is_nested = any(name.startswith(f"{outer}.") for name in blocks for outer in blocks)
        self._seed_of_pass = 0
        self.seen: list[Seen] = []
        self.skipped: dict[str, str] = {}
        self._watched = {name: _Watched(name, layer, widths_of(layer)) for name, layer in blocks.items()}
        self._handles: dict[str, list[Any]] = {}
        for name, each in self._watched.items():
            before = Hook(each.layer, partial(self._enter, each), when=self._is_taking)
            after = Hook(each.layer, partial(self._leave, each), when=self._is_taking)
            self._handles[name] = [
                each.layer.register_forward_pre_hook(before, with_kwargs=True),
                each.layer.register_forward_hook(after, with_kwargs=True),
            ]
            self._watch_inside(each)

    def _watch_inside(self, block: _Watched) -> None:
        """See what layers with the tokens first take, until that tells whether the block has them first, too."""
        inner = tokens_first_layers(block.layer)
        if block.layer in inner:
            return
        for layer in inner:
            notice = Hook(layer, partial(self._enter_inside, block, layer), when=self._is_taking)
            block.inner_handles.append(layer.register_forward_pre_hook(notice, with_kwargs=True))
        self._handles[block.name] += block.inner_handles

    @property
    def is_open(self) -> bool:
        """Whether ``open`` was called since ``close_pass``."""
        return self._drawing is not None

    def open(self, drawing: Drawing) -> None:
        """Forget what was seen, and take the next forward pass."""
        self._forget()
        self._drawing = drawing
        if self._is_nested:
            self._seed_of_pass = int(torch.randint(2**32, (), generator=drawing.generator))

    def close_pass(self) -> list[Seen]:
        """What was seen since ``open``; nothing more is taken until the next one, and nothing is kept here."""
        seen, self.seen = self.seen, []
        ran = {each.block for each in seen} | self.skipped.keys()
        if self._drawing is not None:
            self.skipped |= {name: DOES_NOT_RUN for name in self._watched if name not in ran}
        self._drawing = None
        return seen

    def keep_only(self, names: Sequence[str]) -> None:
        """Take the hooks off all other blocks."""
        for name in [name for name in self._watched if name not in names]:
            del self._watched[name]
            for handle in self._handles.pop(name):
                handle.remove()

    def close(self) -> None:
        """Take all hooks off."""
        self.keep_only(())
        self._forget()
        self._drawing = None

    def _forget(self) -> None:
        self.seen, self.skipped = [], {}
        for each in self._watched.values():
            each.entered.clear()
            each.runs = 0

    def _is_taking(self) -> bool:
        return self._drawing is not None and takes_part()

    @torch.no_grad()
    def _enter(self, block: _Watched, arguments: tuple[Any, ...], keywords: Mapping[str, Any], _: Any) -> None:
        tensor = the_tensor(first_of(block.layer, arguments, keywords), block.widths, self._options.layout)
        entered = _Entered(block.runs, () if tensor is None else tuple(tensor.shape))
        block.entered.append(entered)
        block.runs += 1
        if tensor is None or (layout := layout_of(block.widths, tensor.shape, self._options.layout)) is None:
            return
        grid = block.grids.get(entered.shape)
        if grid is None:
            entered.whole = tensor.detach().clone()
        else:
            self._take(block, entered, tensor.detach(), layout, grid)

    def _enter_inside(
        self, block: _Watched, layer: nn.Module, arguments: tuple[Any, ...], keywords: Mapping[str, Any], _: Any
    ) -> None:
        taken = first_of(layer, arguments, keywords)
        if block.entered and block.entered[-1].inside is None and isinstance(taken, Tensor) and taken.ndim == 3:
            block.entered[-1].inside = tuple(taken.shape)

    def _settle_tokens_first(self, block: _Watched, entered: _Entered, given: Tensor) -> None:
        """Once a run tells, so it stays; the hooks inside go, because some layers are faster without."""
        shape = next((tuple(each) for each in (entered.shape, given.shape) if len(each) == 3), None)
        if entered.inside is None or shape is None or (comes_first := has_tokens_first(shape, entered.inside)) is None:
            return
        block.widths = block.widths._replace(tokens_first=comes_first)
        while block.inner_handles:
            block.inner_handles.pop().remove()

    def _take(self, block: _Watched, entered: _Entered, tensor: Tensor, layout: Axes, grid: tuple[int, ...]) -> None:
        """Draw tokens of the output's grid, and take those of the input."""
        assert self._drawing is not None
        maps, axis = on_grid(*batch_first(tensor, layout), grid)
        places, batch_size, per_image = self._drawing.rows(len(maps))
        count = number_of_tokens(self._options.rho, positions_of(grid))
        inputs = maps.movedim(axis, -1).flatten(1, -2)
        generator = self._generator_of(block, entered)
        entered.index = drawn_tokens(self._options.sampling, count, inputs, generator, places, batch_size)
        entered.num_images = len(maps) // per_image
        if self._options.placebo:
            shifted = take_tokens(maps, rolled(entered.index, per_image), axis)
            entered.tokens = shifted.roll(per_image, dims=0)
        else:
            entered.tokens = take_tokens(maps, entered.index, axis)

    def _generator_of(self, block: _Watched, entered: _Entered) -> torch.Generator:
        """One for all blocks, which draw one after the other; where blocks are nested each run of a block has its own.

        A block draws before those inside it where its grid is known, and after them where it is not.
        """
        assert self._drawing is not None
        if not self._is_nested:
            return self._drawing.generator
        return torch_generator(self._seed_of_pass, block.name, entered.run)

    def _leave(self, block: _Watched, _: Any, __: Any, output: Any) -> None:
        if not block.entered:
            return
        entered = block.entered.pop()
        seen_or_why = self._seen_of(block, entered, output)
        if isinstance(seen_or_why, str):
            self.skipped[block.name] = seen_or_why
        else:
            self.skipped.pop(block.name, None)
            self.seen.append(seen_or_why)

    def _seen_of(self, block: _Watched, entered: _Entered, output: Any) -> Seen | str:
        """One run of the block, or why it cannot be reconstructed."""
        given = the_tensor(output, block.widths, self._options.layout)
        if given is None or not entered.shape:
            return "it gives no tensor" if given is None else "it takes no tensor"
        if not given.requires_grad:
            return "its output needs no gradient"
        if block.inner_handles and entered.whole is not None:
            self._settle_tokens_first(block, entered, given)
        layout = layout_of(block.widths, given.shape, self._options.layout)
        if layout is None or (entered.tokens is None and entered.whole is None):
            return self._why_no_layout(given if layout is None else entered.shape)
        maps, axis = batch_first(given, layout)
        grid = grid_of(maps, axis)
        if positions_of(grid) < FEWEST_TOKENS:
            return _TOO_FEW
        if entered.whole is not None:
            taken = layout_of(block.widths, entered.shape, self._options.layout)
            assert taken is not None
            with torch.no_grad():
                self._take(block, entered, entered.whole, taken, grid)
            block.grids[entered.shape] = grid
        elif block.grids[entered.shape] != grid:
            raise UsageError(
                f"The block {block.name} turns an input of {entered.shape} into {grid} positions, and before into "
                f"{block.grids[entered.shape]}. rho_sim needs blocks whose output has one shape; name other blocks."
            )
        assert entered.tokens is not None and entered.index is not None
        if len(entered.tokens) != len(maps):
            return "its output has another number of images than its input"
        return Seen(block.name, entered.tokens, take_tokens(maps, entered.index, axis), entered.num_images)

    def _why_no_layout(self, given: Tensor | tuple[int, ...]) -> str:
        shape = tuple(given.shape) if isinstance(given, Tensor) else given
        if self._options.layout == "auto" or len(shape) == 2:
            return _TOO_FEW if len(shape) == 2 else f"a shape of {len(shape)} axes has no known layout"
        return f"{self._options.layout} does not fit the shape {shape}"
