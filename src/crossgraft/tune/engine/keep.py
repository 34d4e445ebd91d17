"""The similarity that the epoch whose weights are kept is to have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from crossgraft.errors import UsageError

TOLERANCE = 0.03
"""A similarity this near to its target counts as reached."""
MOST_TRAININGS = 6
"""With different strengths, of one point of the grid on one fold."""


@dataclass(frozen=True)
class Keep:
    """A similarity to the starting network that comes before the selection rule.

    The epoch whose weights are kept is one that is within ``TOLERANCE`` of the target, of several the best by the selection
    rule; where none is, the nearest.

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

    def miss(self, metrics: Mapping[str, float]) -> float:
        """Distance from the target, 0 within the tolerance; infinite where the similarity is not defined."""
        similarity = metrics.get(self.metric, math.nan)
        if math.isnan(similarity):
            return math.inf
        distance = abs(similarity - self.target)
        return 0.0 if distance <= TOLERANCE else distance
