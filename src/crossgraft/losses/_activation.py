"""What makes probabilities of logits, in torch."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor

from crossgraft.tasks import Task


def activate(logits: Float[Tensor, "batch num_classes"], task: Task) -> Float[Tensor, "batch num_classes"]:
    """Softmax over the classes, or the sigmoid of each label, in the number type of the logits."""
    return logits.softmax(dim=1) if task.activation == "softmax" else logits.sigmoid()
