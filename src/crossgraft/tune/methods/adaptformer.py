"""AdaptFormer: train a bottleneck beside the MLP of every transformer block."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import ClassVar, get_args

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models.adapted import add_adapters, look
from crossgraft.models.adapters import AdapterRecipe
from crossgraft.models.adapters.adaptformer import AdaptFormerAdapter, Norm, pre_norm_blocks
from crossgraft.models.classifier import Classifier
from crossgraft.tune.methods._selection import adapters_and_head
from crossgraft.tune.protocols import Method, Selection


@dataclass(frozen=True)
class AdaptFormer(Method):
    """Train ``s · Up(ReLU(Down(x₁)))`` beside the MLP of every transformer block, and the head.

    Up begins as zero, so that training starts from the pretrained network. x₁ is what goes into the norm of the MLP. Only for
    blocks that compute ``x₁ + MLP(norm(x₁))``, with a learned scale or without; others are refused by name.

    Attributes:
        bottleneck: Width between Down and Up.
        scale: s, which stays as it is.
        dropout: Behind the ReLU, in training.
        norm: A layer norm of its own: ``none``, ``in`` (in front of Down) or ``out`` (behind the scale).
    """

    name: ClassVar[str] = "adaptformer"
    title: ClassVar[str] = "AdaptFormer"
    citation: ClassVar[str] = (
        "Chen et al.: AdaptFormer: Adapting Vision Transformers for Scalable Visual Recognition, NeurIPS 2022 (arXiv 2205.13535)"
    )

    bottleneck: int = 64
    scale: float = 0.1
    dropout: float = 0.1
    norm: str = "none"

    def __post_init__(self) -> None:
        if self.bottleneck < 1:
            raise UsageError(f"bottleneck of adaptformer must be at least 1, found {self.bottleneck}.")
        if not (math.isfinite(self.scale) and self.scale > 0):
            raise UsageError(f"scale of adaptformer must be a positive number, found {self.scale}.")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"dropout of adaptformer must be at least 0 and below 1, found {self.dropout}.")
        if self.norm not in get_args(Norm):
            raise UnknownNameError("norm of adaptformer", self.norm, get_args(Norm))

    def add_adapters(self, classifier: Classifier, *, seed: int) -> None:
        """Beside the MLP of every block.

        Raises:
            UsageError: A block is of another kind, or there is none; the message names it.
        """
        are_pre_norm = pre_norm_blocks(classifier, classifier.blocks, lambda: look(classifier))
        other = [name for name in classifier.blocks if not are_pre_norm.get(name, False)]
        if other:
            raise UsageError(
                f"AdaptFormer needs transformer blocks that compute x + MLP(norm(x)), but {other[0]} of "
                f"{classifier.recipe.name} ({type(classifier.get_submodule(other[0])).__name__}) does not"
                + (f", nor do {len(other) - 1} more of its {len(classifier.blocks)} blocks" if len(other) > 1 else "")
                + ". Use --method lora, which adapts layers of any network."
            )
        recipes = [AdapterRecipe(AdaptFormerAdapter.kind, name, asdict(self)) for name in classifier.blocks]
        add_adapters(classifier, recipes, seed=seed)

    def select(self, classifier: Classifier) -> Selection:
        """The bottlenecks and the head.

        Raises:
            UsageError: ``add_adapters`` was not called.
        """
        return adapters_and_head(classifier, trained=f"AdaptFormer of width {self.bottleneck}")
