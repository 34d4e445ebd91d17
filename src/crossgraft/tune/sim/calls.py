"""What a call of a module takes and gives, and whether it counts."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn

from crossgraft.tune.sim.layouts import Widths, layout_of


def called(network: nn.Module, example: object) -> object:
    """What the network says about an example: one argument, a tuple of them, or a dict of keywords."""
    if isinstance(example, Mapping):
        return network(**cast(Mapping[str, Any], example))
    return network(*cast(tuple[Any, ...], example)) if isinstance(example, tuple) else network(example)


def first_of(layer: nn.Module, arguments: tuple[Any, ...], keywords: Mapping[str, Any]) -> Any:
    """The first argument of a call, in the order of the definition of ``forward``."""
    if arguments or not keywords:
        return arguments[0] if arguments else None
    order = inspect.signature(layer.forward).parameters
    return keywords[next((name for name in order if name in keywords), next(iter(keywords)))]


def the_tensor(value: Any, widths: Widths, layout: str) -> Tensor | None:
    """The tensor that a block takes or gives, with a number type that has gradients.

    Of several, those that differ in their channels alone are put together, as the layers of a DenseNet do; else the first counts.
    """
    found = [each for each in _tensors_in(value) if each.is_floating_point()]
    if not found:
        return None
    first = found[0]
    axes = layout_of(widths, first.shape, layout)
    if len(found) > 1 and isinstance(value, list) and axes is not None:
        others = [_without(each.shape, axes.channel_axis) for each in found]
        if all(each == others[0] for each in others):
            return torch.cat(found, dim=axes.channel_axis)
    return first


def _tensors_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        yield from (each for each in value.values() if isinstance(each, Tensor))
    elif isinstance(value, list | tuple):
        yield from (each for each in cast(Sequence[Any], value) if isinstance(each, Tensor))


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return tuple(size for place, size in enumerate(shape) if place != axis)


def takes_part() -> bool:
    """Whether a forward pass counts: with gradients, not traced, and none that checkpointing repeats within a backward pass."""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return torch.is_grad_enabled() and (current is None or current() == -1) and not is_traced()


def is_traced() -> bool:
    """Whether a forward pass is made to write the network down, for ``torch.export``, ``torch.jit`` or ONNX."""
    return torch.compiler.is_exporting() or torch.jit.is_tracing()  # pyright: ignore[reportPrivateImportUsage]
