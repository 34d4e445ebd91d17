"""Which layers LoRA adapts: by name, by glob, by type, or those that give queries and values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Literal, get_args

from torch import nn

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapters.lora import Convolution, why_no_lora

AUTO = "auto"
BETWEEN_TARGETS = "+"
Fused = Literal["q+v", "q+k+v"]
"""Which of the three parts of a layer that gives queries, keys and values at once."""

_FUSED = "qkv"
_QUERIES_AND_VALUES = ("q", "v", "q_proj", "v_proj", "query", "value", "to_q", "to_v", "wq", "wv")
_ATTENTION = re.compile("attn|attention", re.IGNORECASE)

Rows = list[list[int]]


def find_targets(
    network: nn.Module, called: Collection[str], targets: str, *, fused: str, model: str, fixed: Collection[str] = ()
) -> dict[str, Rows]:
    """Name of each layer to adapt → the ranges of its outputs; empty: all of them.

    Args:
        network: Layers below ``body`` are looked at.
        called: Names of the modules that take part in a forward pass by being called.
        targets: ``auto``, or names, globs and types with ``+`` between them. ``auto``: the layers that give queries and
            values; in a network without attention all convolutions that do not work in groups.
        fused: Adapted parts of a layer ``qkv``: ``q+v``, or ``q+k+v``.
        model: Name of the network, for messages.
        fixed: Names of parameters that no method trains.

    Raises:
        UnknownNameError: A part of ``targets`` fits no layer.
        UsageError: A layer cannot be adapted; the message says which and why.
    """
    if fused not in get_args(Fused):
        raise UnknownNameError("fused of lora", fused, get_args(Fused))
    layers = {name: layer for name, layer in network.named_modules() if name.startswith("body.")}
    usable = {n: layer for n, layer in layers.items() if why_no_lora(layer) is None and f"{n}.weight" not in fixed}
    chosen = _automatic(usable, layers, model) if targets == AUTO else _named(usable, targets, layers, model)
    _refuse_uncalled(chosen, called, model)
    return {name: _rows(network, name, layer, fused) for name, layer in usable.items() if name in chosen}


def _automatic(usable: Mapping[str, nn.Module], layers: Mapping[str, nn.Module], model: str) -> list[str]:
    linear = [name for name, layer in usable.items() if isinstance(layer, nn.Linear)]
    attention = [name for name in linear if _last(name) == _FUSED or _last(name) in _QUERIES_AND_VALUES]
    if attention:
        return attention
    attending = next((name for name, layer in layers.items() if _ATTENTION.search(type(layer).__name__)), None)
    if attending is not None:
        raise UsageError(
            f"LoRA does not find the queries and values of {attending} in {model}. Name what it adapts with "
            f"lora:targets=NAME, for example {_listed(usable, 3)}."
        )
    convolutions = [n for n, layer in usable.items() if isinstance(layer, Convolution) and layer.groups == 1]
    if not convolutions:
        raise UsageError(
            f"LoRA finds nothing to adapt in {model}: it has neither queries and values nor convolutions of the usual kind."
            + (f" Name layers with lora:targets=NAME, for example {_listed(usable, 3)}." if usable else "")
        )
    return convolutions


def _named(usable: Mapping[str, nn.Module], targets: str, layers: Mapping[str, nn.Module], model: str) -> list[str]:
    found: list[str] = []
    for target in (part.strip() for part in targets.split(BETWEEN_TARGETS)):
        fitting = [name for name, layer in usable.items() if fits_target(name, layer, target)]
        if not fitting:
            others = [(name, layer) for name, layer in layers.items() if fits_target(name, layer, target)]
            learned = [(name, layer) for name, layer in others if any(True for _ in layer.parameters())]
            if learned:
                name, layer = learned[0]
                raise UsageError(f"LoRA cannot adapt {name} of {model}: {why_no_lora(layer)}.")
            raise UnknownNameError(
                f"layer of {model}", target, {*usable, *(type(layer).__name__ for layer in usable.values())}
            )
        found += fitting
    return found


def fits_target(name: str, layer: nn.Module, target: str) -> bool:
    """Its type; or its name, the last words of its name, or what it lies in (``blocks.11``), also as a glob."""
    if type(layer).__name__ == target:
        return True
    words = name.split(".")
    beginnings = [".".join(words[start:end]) for start in (0, 1) for end in range(start + 1, len(words) + 1)]
    endings = [".".join(words[start:]) for start in range(len(words))]
    return any(fnmatchcase(part, target) for part in (*beginnings, *endings))


def _refuse_uncalled(chosen: Sequence[str], called: Collection[str], model: str) -> None:
    for name in chosen:
        if name not in called:
            raise UsageError(
                f"LoRA cannot adapt {name} of {model}: the network takes its weight without calling the layer, so that an "
                "addition beside it would be lost. Name other layers with lora:targets=NAME."
            )


def _rows(network: nn.Module, name: str, layer: nn.Module, fused: str) -> Rows:
    """Ranges of queries, keys and values; none of a layer that is not fused."""
    if _last(name) != _FUSED or not isinstance(layer, nn.Linear):
        return []
    each, rest = divmod(layer.out_features, 3)
    attention = network.get_submodule(name.rpartition(".")[0])
    proj = getattr(attention, "proj", None)
    expected = proj.in_features if isinstance(proj, nn.Linear) else layer.in_features
    if rest or each != expected or getattr(attention, "head_first", False):
        raise UsageError(
            f"LoRA does not know which outputs of {name} are queries and which are values: they do not lie in three equal "
            "ranges. Name other layers with lora:targets=NAME."
        )
    return [[0, each], [2 * each, 3 * each]] if fused == "q+v" else [[i * each, (i + 1) * each] for i in range(3)]


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _listed(names: Collection[str], number: int) -> str:
    return ", ".join(list(names)[-number:])
