"""What is added to the loss: one interface for all regularisers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from crossgraft.models.classifier import Classifier


@dataclass(frozen=True)
class StepContext:
    """What a regulariser may look at in one step.

    Attributes:
        classifier: The network that is trained.
        images: Prepared, augmented and mixed, as the network saw them.
        targets: One row an image, over classes or labels; soft after mixing.
        rows: Row of the training set of each image (of the first image of a mixed pair).
        features: Penultimate features of ``images``, part of the graph.
        logits: What the head says, part of the graph.
        step: Number of this step, from 0.
        num_processes: How many processes share the batch; ``images`` are this process' share.
        generator: Of this step.
    """

    classifier: Classifier
    images: Float[Tensor, "batch channels height width"]
    targets: Float[Tensor, "batch num_classes"]
    rows: Int[Tensor, " batch"]
    features: Float[Tensor, "batch num_features"]
    logits: Float[Tensor, "batch num_classes"]
    step: int
    num_processes: int
    generator: torch.Generator


@runtime_checkable
class Regularizer(Protocol):
    """One or more terms that are added to the loss; a dataclass whose fields are its options.

    The loss of a step is ``task_weight × task loss + Σ terms``; every term is logged under ``<name>/<term>``.
    A regulariser with learned parameters of its own (an orthogonal map, reconstructors) gives them in
    ``parameter_groups``; they take part in checkpoints through ``state_dict``.

    Attributes:
        name: On the command line and in tables.
        title: In print.
        reference: The paper that defines it.
        task_weight: Factor of the task loss.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]

    @property
    def task_weight(self) -> float:
        """Factor of the task loss; 1 for all but convex combinations."""
        ...

    def attach(self, classifier: Classifier) -> None:
        """Look at the network before the first step (and after the pretrained weights are there): clone references."""
        ...

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The weighted terms of this step, scalars, by name."""
        ...

    def detach(self) -> None:
        """Remove everything that ``attach`` left on the network."""
        ...

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Own parameters as groups of an optimiser (``params``, and ``lr`` or ``weight_decay`` where they differ)."""
        ...

    def modules(self) -> list[nn.Module]:
        """Modules that hold own parameters, for wrapping under several processes."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, as tensors by name."""
        ...

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` gave, after ``attach``."""
        ...
