"""What objectives over domains share: means over groups of a batch, and a penalty whose weight jumps after some steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import one_hot

from crossgraft.errors import UsageError
from crossgraft.tune.protocols import Objective
from crossgraft.words.formatting import count, counted


def group_means(
    values: Float[Tensor, " batch"], groups: Int64[Tensor, " batch"], num_groups: int
) -> tuple[Float[Tensor, " num_groups"], Bool[Tensor, " num_groups"]]:
    """Mean of ``values`` in each group (0 without an image), in the graph, and whether the group has images. O(batch · groups).

    >>> import torch
    >>> group_means(torch.tensor([1.0, 3.0, 5.0]), torch.tensor([0, 0, 2]), 3)
    (tensor([2., 0., 5.]), tensor([ True, False,  True]))
    """
    members = one_hot(groups, num_groups).to(values)  # a product with it adds up in one order on every device
    counts = members.sum(0)
    return values @ members / counts.clamp(min=1), counts > 0


def mean_of_present(values: Float[Tensor, " num_groups"], present: Bool[Tensor, " num_groups"]) -> Float[Tensor, ""]:
    """Mean over the groups that have images."""
    return (values * present).sum() / present.sum()


@dataclass(frozen=True)
class AnnealedPenalty(Objective):
    """Mean over domains of their mean losses, plus a penalty; the penalty has the weight 1 before ``anneal_steps``.

    At the jump the optimiser forgets its moments, which are those of another loss: AdamW would go on dividing by gradients of
    the old size. Both follow from the number of the step, so that a resumed run does the same.

    Attributes:
        weight: Factor of the penalty from ``anneal_steps`` on, at least 0.
        anneal_steps: Steps with a factor of 1, at least 0.

    Raises:
        UsageError: A value has no meaning.
    """

    needs_domains: ClassVar[bool] = True

    weight: float = 1.0
    anneal_steps: int = 500

    def __post_init__(self) -> None:
        if not 0 <= self.weight < float("inf"):
            raise UsageError(f"{self.name}: weight must be at least 0, not {self.weight}.")
        if self.anneal_steps < 0:
            raise UsageError(f"{self.name}: anneal_steps must be at least 0, not {self.anneal_steps}.")

    @property
    def sampler(self) -> str:
        """As many images of each domain."""
        return "domains"

    @property
    def restarts_optimizer_at(self) -> int | None:
        """Where the weight jumps."""
        return self.anneal_steps or None

    def warning_of_length(self, num_steps: int) -> str | None:
        """A weight that no step has."""
        if self.weight == 1 or num_steps > self.anneal_steps:
            return None
        return (
            f"--objective {self.name} has its weight of {self.weight:g} after {counted(self.anneal_steps, 'step')}, and this "
            f"training has {count(num_steps)}: the weight is 1 all along. Train longer, or say --objective "
            f"{self.name}:weight={self.weight:g},anneal_steps={num_steps // 4}."
        )

    def factor(self, step: int) -> float:
        """Factor of the penalty in this step."""
        return self.weight if step >= self.anneal_steps else 1.0
