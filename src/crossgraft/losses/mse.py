"""Squared distance between the output and the label: what RepSim's theory calls the classification loss."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from crossgraft.losses._loss import (
    Logits,
    LossTargets,
    PerImageLoss,
    TaskName,
    Weights,
    check_task,
    class_weights,
    parsed_weights,
    weight_tensor,
)


@dataclass(frozen=True)
class SquaredError:
    """ℓ_i = ‖f(x_i) − y_i‖² z_i before softmax and one-hot labels y_i; times w of its class.

    The text leaves open what f(x) is; its proofs take the output of the last linear layer. Probabilities are the softmax of
    outputs near 0 and 1, so that they are too close to each other until a temperature is fitted.

    Args:
        class_weights: ``balanced`` is n / (C · n_c) as in scikit-learn, or one positive number per class: the weight of an
            image by its class.

    Raises:
        UsageError: A weight is not a positive number.
    """

    name: ClassVar[str] = "mse"
    title: ClassVar[str] = "Squared error"
    citation: ClassVar[str] = "RepSim, eq. 1"
    tasks: ClassVar[tuple[TaskName, ...]] = ("multi-class", "binary")

    class_weights: Weights = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_weights", parsed_weights(self.class_weights, self.name))

    def resolve(self, targets: LossTargets, *, task: TaskName) -> SquaredError:
        """With balanced weights counted from the training targets; errors as in ``Loss.resolve``."""
        check_task(self, task)
        return dataclasses.replace(self, class_weights=class_weights(self.class_weights, targets, self.name))

    def __call__(self, logits: Logits, targets: LossTargets) -> PerImageLoss:
        """Loss of each image, ≥ 0."""
        targets = targets.to(logits.dtype)
        of_image = (logits - targets).square().sum(dim=1)
        weights = weight_tensor(self.class_weights, logits, self.name)
        return of_image if weights is None else of_image * (targets * weights).sum(dim=1)
