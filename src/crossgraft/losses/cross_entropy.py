"""Cross-entropy of the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch.nn.functional import cross_entropy

from crossgraft.losses._loss import Logits, LossTargets, PerImageLoss, WeighsClasses, weight_tensor


@dataclass(frozen=True)
class CrossEntropy(WeighsClasses):
    """ℓ_i = −Σ_c w_c t_ic log p_ic with p = softmax(logits).

    The loss of a batch is (1/b) Σ_i ℓ_i: a mean over images. ``torch.nn.CrossEntropyLoss(weight=w)`` divides by the sum
    of the weights in the batch instead; then the factor of an image depends on which others share its batch, and batches
    that are accumulated or spread over processes no longer add up to the whole one. Balanced weights have mean 1 over
    the training images, so that both agree on average.

    Args:
        class_weights: ``balanced`` is n / (C · n_c) as in scikit-learn; or one positive number per class.

    Raises:
        UsageError: A weight is not a positive number.

    Example:
        >>> import torch
        >>> logits, targets = torch.tensor([[0.0, 0.0]]), torch.tensor([[0.0, 1.0]])
        >>> round(CrossEntropy(class_weights=(1.0, 3.0))(logits, targets).item(), 4)  # 3 ln 2
        2.0794
    """

    name: ClassVar[str] = "cross_entropy"
    title: ClassVar[str] = "Cross-entropy"
    citation: ClassVar[str] = "Good, Rational Decisions, J. R. Stat. Soc. B 14 (1952) 107"

    def __call__(self, logits: Logits, targets: LossTargets) -> PerImageLoss:
        """Loss of each image, ≥ 0."""
        weights = weight_tensor(self.class_weights, logits, self.name)
        return cross_entropy(logits, targets.to(logits.dtype), weight=weights, reduction="none")
