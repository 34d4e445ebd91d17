"""ERM: the mean loss over all images, whatever domain they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from crossgraft.tune.protocols import Objective, ObjectiveContext


@dataclass(frozen=True)
class ERM(Objective):
    """(1/b) Σ_i ℓ_i: every image counts the same.

    Cost: nothing beyond the task loss.
    """

    name: ClassVar[str] = "erm"
    title: ClassVar[str] = "Empirical risk minimisation"
    citation: ClassVar[str] = "Vapnik, Principles of Risk Minimization for Learning Theory, NeurIPS 1991"
    is_plain_mean: ClassVar[bool] = True

    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        """``risk``, the mean loss."""
        return {"risk": context.losses.mean()}
