"""A small regulariser: logits stay small, so that the network does not become too sure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor, nn

from crossgraft.models.classifier import Classifier
from crossgraft.tune.regularizers import StepContext, StepUpdate, TrainingSet


@dataclass
class QuietLogits:
    """strength · mean of the squared logits of the batch.

    Attributes:
        strength: At least 0.
    """

    name: ClassVar[str] = "quiet_logits"
    title: ClassVar[str] = "Quiet logits"
    citation: ClassVar[str] = "Example of a third-party regulariser; no paper"

    strength: float = 0.01

    @property
    def task_weight(self) -> float:
        return 1.0

    def attach(self, classifier: Classifier, training_set: TrainingSet | None = None) -> None:
        """Nothing to remember."""

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        return {"logits": self.strength * context.logits.square().mean()}

    def after_step(self, update: StepUpdate) -> None:
        """Nothing to do."""

    def detach(self) -> None:
        """Nothing was left."""

    def parameter_groups(self) -> list[dict[str, Any]]:
        return []

    def modules(self) -> list[nn.Module]:
        return []

    def state_dict(self) -> dict[str, Tensor]:
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Nothing was saved."""
