"""What named layers of any network take and give, by hooks that never stay behind."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.parallel import DataParallel, DistributedDataParallel

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.positions import find_layout, mean_over_positions


@contextmanager
def modes_kept(module: nn.Module) -> Generator[None]:
    """Inside the block modes may be changed; after it every part of ``module`` has the mode that it had."""
    modes = [(part, part.training) for part in module.modules()]
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


@contextmanager
def state_kept(module: nn.Module) -> Generator[None]:
    """After the block ``module`` remembers what it did before: attributes, hooks, buffers, and where its own generators stand.

    What it changed inside of other objects that it holds, such as lists, stays changed. A lazy layer keeps the width it found.
    """
    parts = [part for part in module.modules() if not isinstance(part, torch.jit.ScriptModule | LazyModuleMixin)]
    held = [value for part in parts for value in (vars(part), *vars(part).values())]
    dicts = [(each, dict(each)) for each in held if isinstance(each, dict)]
    generators = [(each, each.get_state()) for each in held if isinstance(each, torch.Generator)]
    buffers = [(each, each.clone()) for part in parts for each in part.buffers(recurse=False)]
    try:
        yield
    finally:
        for each, before in dicts:
            each.clear()
            each.update(before)
        for each, before in generators:
            each.set_state(before)
        with torch.no_grad():
            for each, before in buffers:
                if not torch.equal(each, before):
                    each.copy_(before)


Side = Literal["output", "input"]
_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Tap:
    """What is taken from one layer in a forward pass.

    Attributes:
        layer: Name in ``named_modules()`` of the network; of a wrapped one (compiled, parallel, PEFT) of what is inside.
        of: What the layer gives, or what it takes.
        select: Choice among several tensors: a place in a tuple or list, a key of a dict, the place or keyword of an argument, or
            a function. None: the output itself, the first argument.
        pool: ``mean``: averaged over the positions of a feature map, or of the patches of tokens.
        with_graph: The tensor of the network, part of the graph; what works in place behind the layer changes it. Otherwise a
            detached copy.
        run: Run that counts of a layer that runs several times in a forward pass; ``only``: that is an error.
    """

    layer: str
    of: Side = "output"
    select: int | str | Callable[[Any], object] | None = None
    pool: Literal["mean"] | None = None
    with_graph: bool = False
    run: Literal["only", "first", "last"] = "only"


class Taps:
    """What ``taps`` take inside a ``with`` block around a forward pass, by tap; hooks are gone after the block.

    A network that ``torch.compile`` made runs uncompiled in the block: compiled code would run past the hooks.

    Args:
        network: Any module, wrapped or not.
        taps: Taps of its layers.
        when: Asked each time a layer runs; nothing is taken where the answer is no.

    Raises:
        UnknownNameError: There is no such layer, or (in the forward pass) no such part; the message gives the nearest names.
        UsageError: What is taken is no tensor (in the forward pass).

    Cost: a copy of each tensor, or of its average; none with a graph.
    """

    def __init__(self, network: nn.Module, taps: Iterable[Tap], *, when: Callable[[], bool] | None = None) -> None:
        wrapped = with_wrappers(network)
        self._network = wrapped[-1]
        self._is_compiled = is_compiled(network)
        self._layers = {tap: named_layer(self._network, tap.layer) for tap in taps}
        self._when = when
        self._hooks = ExitStack()

    def __enter__(self) -> Taps:
        self._tapped: dict[Tap, Tensor] = {}
        self._runs = dict.fromkeys(self._layers, 0)
        for side in ("input", "output"):
            layers = {tap: layer for tap, layer in self._layers.items() if tap.of == side}
            self._hooks.enter_context(watch(layers, self._take, of=side))
        if self._is_compiled:
            self._hooks.enter_context(torch.compiler.set_stance("force_eager"))
        return self

    def __exit__(self, *_: object) -> None:
        self._hooks.close()

    def runs(self, tap: Tap) -> int:
        """How often the layer has run."""
        return self._runs[tap]

    def __getitem__(self, tap: Tap) -> Shaped[Tensor, "..."]:
        """What was taken.

        Raises:
            UsageError: The layer has not run, or several times where that is an error.
        """
        runs = self._runs[tap]
        if runs == 0:
            raise UsageError(f"The layer {tap.layer} does not run in this forward pass. Choose another one.")
        if runs > 1 and tap.run == "only":
            raise UsageError(f"The layer {tap.layer} runs {runs} times in this forward pass. Choose run='first' or 'last'.")
        return self._tapped[tap]

    def pop(self, tap: Tap) -> Shaped[Tensor, "..."]:
        """What was taken; forgotten here, with the graph behind it, so that the next forward pass counts anew."""
        tensor = self[tap]
        del self._tapped[tap]
        self._runs[tap] = 0
        return tensor

    def _take(self, tap: Tap, value: Any) -> None:
        if self._when is not None and not self._when():
            return
        self._runs[tap] += 1
        if self._runs[tap] > 1 and tap.run != "last":
            return
        tensor = _select(tap, value)
        tensor = tensor if tap.with_graph else tensor.detach()
        if tap.pool == "mean":  # a classifier leaves it to its body to say where channels are
            tensor = mean_over_positions(tensor, find_layout(getattr(self._network, "body", self._network), tensor.shape))
        self._tapped[tap] = tensor if tap.with_graph else tensor.clone()


def watch(layers: Mapping[_Key, nn.Module], notice: Callable[[_Key, Any], object], *, of: Side = "output") -> ExitStack:
    """Tell ``notice`` what each layer gives, or takes, until the ``with`` block around it ends, or ``close``.

    What it takes is a dict of its arguments, by place (0, 1 …) and keyword.
    """

    def hook_of(key: _Key) -> Callable[[nn.Module, tuple[object, ...], Any], None]:
        def hook(_module: nn.Module, positional: tuple[object, ...], last: Any) -> None:
            notice(key, last if of == "output" else {**dict(enumerate(positional)), **last})

        return hook

    hooks = ExitStack()
    for key, layer in layers.items():
        if of == "output":
            handle = layer.register_forward_hook(hook_of(key))
        else:
            handle = layer.register_forward_pre_hook(hook_of(key), with_kwargs=True)
        hooks.callback(handle.remove)
    return hooks


def only_tensor(output: object) -> object:
    """The tensor of a tuple that holds nothing else, as layers of transformers give it; everything else as it is.

    >>> only_tensor((1, None))
    (1, None)
    """
    if isinstance(output, tuple):
        parts = [part for part in cast("tuple[object, ...]", output) if part is not None]
        if len(parts) == 1 and isinstance(parts[0], Tensor):
            return parts[0]
    return cast(object, output)


def named_layer(network: nn.Module, name: str) -> nn.Module:
    """The layer of this name.

    Raises:
        UnknownNameError: There is none; the message gives the nearest names.
    """
    try:
        if name:
            return network.get_submodule(name)
    except AttributeError:
        pass
    raise UnknownNameError("layer", name, [known for known, _ in network.named_modules() if known])


def unwrapped(network: nn.Module) -> nn.Module:
    """What ``torch.compile``, parallel training and PEFT have wrapped, or the network itself."""
    return with_wrappers(network)[-1]


def is_compiled(network: nn.Module) -> bool:
    """Whether ``torch.compile`` was asked for; its code runs past hooks that come later."""
    return any(hasattr(layer, "_orig_mod") or layer._compiled_call_impl is not None for layer in with_wrappers(network))


def with_wrappers(network: nn.Module) -> list[nn.Module]:
    """The network and those inside it that ``torch.compile``, parallel training and PEFT have wrapped, outermost first."""
    if hasattr(network, "_orig_mod"):
        return [network, *with_wrappers(network.get_submodule("_orig_mod"))]
    if isinstance(network, DistributedDataParallel | DataParallel):
        return [network, *with_wrappers(network.module)]
    of_peft = getattr(network, "get_base_model", None)
    inside = of_peft() if callable(of_peft) else None
    return [network, *with_wrappers(inside)] if isinstance(inside, nn.Module) else [network]


def _select(tap: Tap, value: Any) -> Tensor:
    if callable(tap.select):
        tensor = tap.select(value)
    elif tap.select is None:
        tensor = only_tensor(value) if tap.of == "output" else next(iter(value.values()), None)
    else:
        parts_by_index = enumerate(value) if isinstance(value, Sequence) else ()
        parts: Mapping[Any, object] = value if isinstance(value, Mapping) else dict(parts_by_index)
        if tap.select not in parts:
            raise UnknownNameError(f"part of the {tap.of} of {tap.layer}", str(tap.select), map(str, parts))
        tensor = parts[tap.select]
    if not isinstance(tensor, Tensor):
        does = "returns" if tap.of == "output" else "takes"
        raise UsageError(
            f"The layer {tap.layer} {does} a {type(tensor).__name__}, not a tensor. Choose a layer inside or after it, or select "
            "a part of it."
        )
    return tensor
