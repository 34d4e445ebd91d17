"""LoRA: train a product of two small matrices beside chosen layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn

from crossgraft.errors import UsageError
from crossgraft.models.adapted import add_adapters, called_modules
from crossgraft.models.adapters import AdapterRecipe, LoraAdapter, adapters_of
from crossgraft.models.adapters.lora import AUTO, find_targets
from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods._selection import adapters_and_head
from crossgraft.tune.protocols import Method, Selection


@dataclass(frozen=True)
class LoRA(Method):
    """Train ``ΔW = (α / r) B A`` beside chosen layers, and the head; the pretrained weights stay as they are.

    A is drawn and B begins as zero, so that training starts from the pretrained network. Beside a convolution A is the same
    convolution to r channels and B one of size 1. After training ΔW can become part of the weights.

    Attributes:
        r: Rank.
        alpha: α; r if it is not given, so that the factor is 1.
        targets: ``auto``, or names, globs and types of layers with ``+`` between them (``blocks.*.attn.proj+Conv2d``).
            ``auto``: queries and values; in a network without attention all convolutions that do not work in groups.
        dropout: Probability that an input of A is left out in training.
        fused: Parts of a layer that gives queries, keys and values at once: ``q+v`` leaves its keys exactly as they are, and
            each other part has an A and a B of its own; ``q+k+v``.
    """

    name: ClassVar[str] = "lora"
    title: ClassVar[str] = "LoRA"
    citation: ClassVar[str] = "Hu et al.: LoRA: Low-Rank Adaptation of Large Language Models, ICLR 2022 (arXiv 2106.09685)"

    r: int = 8
    alpha: float | None = None
    targets: str = AUTO
    dropout: float = 0.0
    fused: str = "q+v"

    def __post_init__(self) -> None:
        if self.r < 1:
            raise UsageError(f"r of lora must be at least 1, found {self.r}.")
        if self.alpha is not None and not (math.isfinite(self.alpha) and self.alpha > 0):
            raise UsageError(f"alpha of lora must be a positive number, found {self.alpha}.")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout of lora must be at least 0 and below 1, found {self.dropout}.")

    def add_adapters(self, classifier: Classifier, *, seed: int) -> None:
        """Beside every target.

        Raises:
            UnknownNameError: A name fits no layer; the message gives the nearest ones.
            UsageError: A layer cannot be adapted, or the rank is above that of every layer; the message says why.
        """
        called = called_modules(classifier)
        rows_of_layers = find_targets(
            classifier, called, self.targets, fused=self.fused, model=classifier.recipe.name, fixed=classifier.untrainable
        )
        most = max([type(self).r, *(_full_rank(classifier.get_submodule(name)) for name in rows_of_layers)])
        if self.r > most:
            raise UsageError(
                f"r of lora is {self.r}, but no layer that it would stand beside has a rank above {most}, so more adds nothing. "
                f"Give at most lora:{most}."
            )
        options = {"r": self.r, "alpha": float(self.r if self.alpha is None else self.alpha), "dropout": self.dropout}
        recipes: list[AdapterRecipe] = []
        for name, rows in rows_of_layers.items():
            of_rows: dict[str, Any] = {"rows": rows} if rows else {}
            recipes.append(AdapterRecipe(LoraAdapter.kind, name, {**options, **of_rows}))
        add_adapters(classifier, recipes, seed=seed)

    def select(self, classifier: Classifier) -> Selection:
        """The matrices and the head.

        Raises:
            UsageError: ``add_adapters`` was not called.
        """
        ranks = sorted({part.r for _, part in adapters_of(classifier).values() if isinstance(part, LoraAdapter)} or {self.r})
        rank = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
        return adapters_and_head(classifier, trained=f"LoRA of {rank}")


def _full_rank(layer: nn.Module) -> int:
    """Largest rank of a change of the weights of a linear layer or convolution; 0 of any other, which is refused later."""
    weight = getattr(layer, "weight", None)
    return min(weight.shape[0], weight[0].numel()) if isinstance(weight, torch.Tensor) and weight.ndim > 1 else 0
