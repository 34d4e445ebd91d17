"""How strong a regulariser is, found from how alike features are to be: a controller that looks once an epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from crossgraft.errors import UsageError

TOLERANCE = 0.03
"""A similarity this near to its target counts as reached."""
WEAKEST, STRONGEST = 1e-4, 1e4
"""Bounds of the strength; what is not reached within them is out of reach."""
GAIN = 10.0
"""Change of the logarithm of the strength for each unit of similarity that is missing …"""
DAMPING = 10.0
"""… and for each unit that was lost since the epoch before, so that a fall is met before it is deep."""
FASTEST = math.log(10)
"""Largest change of that logarithm after one epoch."""


@dataclass(frozen=True)
class Keep:
    """Similarity to the starting network that training is to end at.

    The strength s multiplies the terms of all regularisers that compare with the starting network. After each epoch

        log s ← log s + clip(GAIN · (target − c) + DAMPING · (c_before − c), ±FASTEST)

    for the similarity c of this epoch and that of the one before: a proportional-derivative step in log s. The epoch whose
    weights are kept is one that is within ``TOLERANCE`` of the target, of several the best by the selection rule; where none
    is, the nearest.

    Attributes:
        target: Debiased CKA on the selection rows, in (0, 1).
        metric: Name of that similarity among the metrics of an evaluation.
    """

    target: float
    metric: str = "cka_debiased"

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise UsageError(
                f"--keep is a similarity between 0 and 1, for example 0.8; found {self.target}. To keep all of it, train the "
                "head alone (--method linear)."
            )

    @classmethod
    def of(cls, target: float, *, adapted: bool) -> Keep:
        """Similarity to the network that training starts from.

        Args:
            target: Debiased CKA, in (0, 1).
            adapted: Whether that network has BatchNorm statistics of the training images.

        Raises:
            UsageError: ``target`` is outside.
        """
        return cls(float(target), "cka_debiased_adapted" if adapted else "cka_debiased")

    def similarity(self, metrics: Mapping[str, float], otherwise: float) -> float:
        """The similarity that an evaluation found; ``otherwise`` where it is not defined."""
        found = metrics.get(self.metric, math.nan)
        return otherwise if math.isnan(found) else found

    def miss(self, metrics: Mapping[str, float]) -> float:
        """Distance from the target, 0 within the tolerance; infinite where the similarity is not defined."""
        similarity = self.similarity(metrics, math.inf)
        distance = abs(similarity - self.target)
        return 0.0 if distance <= TOLERANCE else distance

    def next_strength(self, strength: float, metrics: Mapping[str, float], before: float) -> float:
        """Strength of the next epoch; the same where the similarity is not defined.

        Args:
            strength: Strength of the epoch that has ended.
            metrics: Metrics of the evaluation after it.
            before: Similarity after the epoch before; 1 at the start.
        """
        similarity = self.similarity(metrics, math.nan)
        if math.isnan(similarity):
            return strength
        change = GAIN * (self.target - similarity) + DAMPING * (before - similarity)
        change = min(max(change, -FASTEST), FASTEST)
        return min(max(strength * math.exp(change), WEAKEST), STRONGEST)
