"""What the engine knows of objectives, which stand in the place of the mean task loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor


@dataclass(frozen=True)
class ObjectiveContext:
    """What an objective may look at in one step: the whole batch of all processes, in the order of the batch.

    Attributes:
        losses: Task loss of each image, part of the graph.
        logits: What the head says, part of the graph.
        targets: One row per image, over classes or labels; soft after mixing.
        domains: Domain of each image, from 0; all 0 where nobody said.
        num_domains: Number of domains among the training images; some may be missing in a batch.
        step: Number of this step, from 0.
        loss: The task loss, from logits and targets to one number per image.
        generator: Random number generator of this step, on the CPU; the same in every process.
    """

    losses: Float[Tensor, " batch"]
    logits: Float[Tensor, "batch num_classes"]
    targets: Float[Tensor, "batch num_classes"]
    domains: Int64[Tensor, " batch"]
    num_domains: int
    step: int
    loss: Callable[[Tensor, Tensor], Tensor]
    generator: torch.Generator


@runtime_checkable
class Objective(Protocol):
    """What training minimises; a dataclass whose fields are its options.

    The loss of a step is ``task_weight × Σ terms of the objective + Σ terms of the regularisers``; every term is logged under
    ``<name>/<term>``, and ``task`` stays the plain mean of the task loss. Every process computes the objective of the whole
    batch, so that its gradient does not depend on their number. In the head's phase of ``--head-first`` the plain mean is
    minimised, as nothing is added to the loss there either.

    A class that inherits from this one needs no more than its name, title, citation, options and ``__call__``. What it learns
    from one step to the next it keeps in tensors, which ``state_dict`` gives to checkpoints; anything else that changes follows
    from ``context.step`` alone, so that a resumed run ends like one that was not stopped.

    Attributes:
        name: On the command line and in tables.
        title: In print.
        citation: The paper that defines it.
        is_plain_mean: Whether it is the mean of the task loss over images; then it is not called, and a batch may have parts.
        needs_domains: Whether it compares domains, and means nothing without ``--domains``.
        fewest_per_group: Images that it needs of each domain (or domain and class) in a batch.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    citation: ClassVar[str]
    is_plain_mean: ClassVar[bool] = False
    needs_domains: ClassVar[bool] = False
    fewest_per_group: ClassVar[int] = 1

    @property
    def sampler(self) -> str | None:
        """Sampler whose batches it needs: ``domains`` or ``domains_and_classes``; None: any."""
        return None

    @property
    def restarts_optimizer_at(self) -> int | None:
        """Step before which the optimiser forgets its moments, because the loss jumps there; None: never."""
        return None

    def warning_of_length(self, num_steps: int) -> str | None:
        """What goes wrong in a training of so many steps, and what to do; None where nothing does."""
        return None

    def attach(self, *, num_domains: int, num_classes: int) -> None:
        """Begin anew, before the first step."""

    @abstractmethod
    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        """The terms of this step, scalars in the graph, by name; their sum is minimised."""
        ...

    def state_dict(self) -> dict[str, Tensor]:
        """Everything that a resumed run needs, as tensors by name."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state_dict`` gave, after ``attach``."""
