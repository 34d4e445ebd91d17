"""Parameter groups of an optimiser: what decays, and how fast each layer learns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.tune.protocols.method import Selection


def parameter_groups(
    classifier: Classifier,
    selection: Selection,
    *,
    learning_rate: float,
    weight_decay: float,
    layer_decay: float = 1.0,
    head_learning_rate: float | None = None,
) -> list[dict[str, Any]]:
    """Sort the trained parameters into groups, deepest last.

    No weight decay acts on vectors and scalars (biases, norms) and on what the network itself excepts (timm's
    ``no_weight_decay``: positions, class tokens). A layer learns at ``learning_rate · decay^(deepest − depth)``, where the
    depth counts building blocks, what follows the last block goes with it and the head is deepest, as timm does it.

    Args:
        classifier: Its blocks give the depths.
        selection: Only what it trains is in a group, each parameter once.
        learning_rate: Learning rate of all layers without ``layer_decay``, of the head with it.
        weight_decay: Weight decay of matrices and kernels.
        layer_decay: Factor from one block to the one in front of it, in (0, 1]; 1: all layers learn alike.
        head_learning_rate: Learning rate of the head; ``learning_rate`` if None.

    Returns:
        Groups with ``params``, ``lr``, ``weight_decay``, and for people ``name`` (``depth 3, no decay``) and ``names``
        (of the parameters).

    Raises:
        UsageError: ``layer_decay`` is not in (0, 1].

    Reference: Clark, Luong, Le, Manning: ELECTRA, ICLR 2020, appendix B, for the decay over layers.
    """
    if not 0 < layer_decay <= 1:
        raise UsageError(f"The layer decay must be above 0 and at most 1, found {layer_decay}.")
    depths = classifier.depths()
    deepest = len(classifier.blocks) + 1
    excepted = _without_decay(classifier)
    groups: dict[tuple[int, bool, bool], dict[str, Any]] = {}
    for name, parameter in classifier.named_parameters():
        if name not in selection.trained:
            continue
        is_head = name.startswith("head.")
        decays = _decays(name, parameter, excepted)
        depth = deepest if layer_decay == 1 or is_head else min(depths[name], deepest - 1)
        base = head_learning_rate if is_head and head_learning_rate is not None else learning_rate
        group = groups.setdefault(
            (depth, is_head, decays),
            {
                "params": [],
                "lr": base * layer_decay ** (deepest - depth),
                "weight_decay": weight_decay if decays else 0.0,
                "name": ("head" if is_head else f"depth {depth}" if layer_decay < 1 else "body")
                + ("" if decays else ", no decay"),
                "names": [],
            },
        )
        group["params"].append(parameter)
        group["names"].append(name)
    return [groups[key] for key in sorted(groups)]


def _decays(name: str, parameter: nn.Parameter, excepted: Collection[str]) -> bool:
    return parameter.ndim > 1 and not name.endswith(".bias") and name not in excepted


def _without_decay(classifier: Classifier) -> set[str]:
    """What the network's author excepts, in timm's words."""
    said = getattr(classifier.body, "no_weight_decay", None)
    return {f"body.{name}" for name in cast("Collection[str]", said())} if callable(said) else set()
