"""A small regulariser: logits stay small, so that the network does not become too sure."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from crossgraft.tune.regularizers import Regularizer, StepContext


@dataclass
class QuietLogits(Regularizer):
    """strength · mean of the squared logits of the batch.

    Attributes:
        strength: At least 0.
    """

    name: ClassVar[str] = "quiet_logits"
    title: ClassVar[str] = "Quiet logits"
    citation: ClassVar[str] = "Example of a third-party regulariser; no paper"

    strength: float = 0.01

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        return {"logits": self.strength * context.logits.square().mean()}
