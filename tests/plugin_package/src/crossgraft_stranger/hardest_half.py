"""A small objective: only the images that are hardest count."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from crossgraft.tune.objectives import Objective, ObjectiveContext


@dataclass(frozen=True)
class HardestHalf(Objective):
    """Mean of the largest losses of the batch.

    Args:
        share: Share of the images that count, in (0, 1].
    """

    name: ClassVar[str] = "hardest_half"
    title: ClassVar[str] = "Hardest half"
    citation: ClassVar[str] = "Example of a third-party objective; no paper"

    share: float = 0.5

    def __call__(self, context: ObjectiveContext) -> dict[str, Tensor]:
        number = max(1, round(self.share * len(context.losses)))
        return {"largest": context.losses.topk(number).values.mean()}
