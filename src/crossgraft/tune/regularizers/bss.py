"""BSS: make the weakest directions of a batch's features weaker still."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.errors import UsageError
from crossgraft.tune.protocols import Regularizer, StepContext
from crossgraft.tune.regularizers._reference import wide


@dataclass
class BSS(Regularizer):
    """The k smallest squared singular values of the features of a batch.

        weakest = w · Σ_{i ≤ k} σ²_{−i}(F)

    F holds one row per image of the batch of all processes and is not centred; with ``--accumulate`` each part of a batch
    has its own. Features are taken in float32 at least.

    Attributes:
        weight: Strength w ≥ 0.
        k: Number of singular values, from the smallest; at least 1. A batch with fewer has all of them in the term.

    Cost: an eigendecomposition of the smaller of the two Gram matrices, b × b or d × d, each step.

    Reference: Chen, Wang, Fu, Long, Wang: Catastrophic Forgetting Meets Negative Transfer: Batch Spectral Shrinkage for Safe
    Transfer Learning, NeurIPS 2019, equation 4; the defaults are those of the Transfer-Learning-Library.
    """

    name: ClassVar[str] = "bss"
    title: ClassVar[str] = "BSS"
    citation: ClassVar[str] = (
        "Chen, Wang, Fu, Long, Wang: Catastrophic Forgetting Meets Negative Transfer: Batch Spectral Shrinkage for Safe "
        "Transfer Learning, NeurIPS 2019"
    )
    keeps_reference: ClassVar[bool] = False

    weight: float = 1e-3
    k: int = 1

    def __post_init__(self) -> None:
        if not (math.isfinite(self.weight) and self.weight >= 0):
            raise UsageError(f"weight of bss must be a number of at least 0, found {self.weight}.")
        if self.k < 1:
            raise UsageError(f"k of bss must be at least 1, found {self.k}.")

    def loss(self, context: StepContext) -> dict[str, Tensor]:
        """The term ``weakest``."""
        with torch.autocast(context.features.device.type, enabled=False):
            return {"weakest": self.weight * smallest_squares(context.of_all_processes(wide(context.features)), self.k)}


def smallest_squares(features: Float[Tensor, "batch num_features"], k: int) -> Float[Tensor, ""]:
    """Sum of the k smallest squared singular values, of min(b, d); nan where a feature is not finite.

    For unit eigenvectors V of the smallest eigenvalues of FᵀF the sum is ‖F V‖². Its gradient with V held fixed, 2 F V Vᵀ,
    is that of the sum, because eigenvectors are stationary: so nothing is differentiated through the decomposition, and
    repeated singular values do no harm.
    """
    rows = features.T if len(features) < features.shape[1] else features
    with torch.no_grad():
        gram = rows.T @ rows
        if not bool(gram.isfinite().all()):  # the decomposition would fail; training is stopped by nan with a name
            return features.sum() * math.nan
        weakest = torch.linalg.eigh(gram).eigenvectors[:, :k]
    return (rows @ weakest).square().sum()
