"""Squared distance between the output and the label: what RepSim's theory calls the classification loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crossgraft.losses._loss import Logits, LossTargets, PerImageLoss, WeighsClasses, weight_tensor


@dataclass(frozen=True)
class SquaredError(WeighsClasses):
    """ℓ_i = w ‖z_i − y_i‖² of outputs z_i before softmax and one-hot labels y_i; w is the weight of the class, 1 without.

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

    def __call__(self, logits: Logits, targets: LossTargets) -> PerImageLoss:
        """Loss of each image, ≥ 0."""
        targets = targets.to(logits.dtype)
        of_image = (logits - targets).square().sum(dim=1)
        weights = weight_tensor(self.class_weights, logits, self.name)
        return of_image if weights is None else of_image * (targets * weights).sum(dim=1)
