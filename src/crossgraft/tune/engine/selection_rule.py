"""Which epoch is kept: by a rule, printed beside every result, and before it by the similarity that training is to end at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Literal

from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.paths import shortened
from crossgraft.tune.words import compared_in_words


@dataclass(frozen=True)
class SelectionRule:
    """Which epoch's weights are kept.

    Attributes:
        metric: Name of the metric of the selection rows (``loss``, ``auc``, …) that is compared.
        direction: Whether a smaller or a larger value is better.
        keep: ``best``: the epoch with the best value, of equal ones the earliest; ``last``: the last epoch.
    """

    metric: str = "loss"
    direction: Literal["min", "max"] = "min"
    keep: Literal["best", "last"] = "best"

    @property
    def name(self) -> str:
        """In words, for tables and model cards.

        >>> SelectionRule("auc", "max").name
        'highest auc on the selection rows, earliest epoch of equal ones'
        """
        if self.keep == "last":
            return "last epoch"
        extreme = "lowest" if self.direction == "min" else "highest"
        return f"{extreme} {self.metric} on the selection rows, earliest epoch of equal ones"

    def value(self, metrics: Mapping[str, float]) -> float:
        """The number that is compared; nan where the metric is not defined.

        Raises:
            UnknownNameError: No metric has that name.
        """
        if self.metric not in metrics:
            raise UnknownNameError("metric of the selection rule", self.metric, metrics)
        return float(metrics[self.metric])

    def is_better(self, value: float, best: float | None) -> bool:
        """Whether ``value`` beats ``best`` (None: nothing there yet); an undefined value only beats nothing."""
        if best is None:
            return True
        if math.isnan(best) or math.isnan(value):
            return math.isnan(best) and not math.isnan(value)
        return value < best if self.direction == "min" else value > best


TOLERANCE = 0.03
"""A similarity this near to its target counts as reached."""
MOST_TRAININGS = 8
"""With different factors, of one point of the grid on one fold. With eight, 1 in 240 made-up curves of similarity over the
factor ends with the target between two trainings and none near it, with six 1 in 12; a search takes 4 on average."""


@dataclass(frozen=True)
class Keep:
    """A similarity to the starting network that comes before the selection rule.

    Only epochs from which on the similarity stays within ``TOLERANCE`` of the target to the end of training can be kept, of
    several the best by the selection rule: one that is passed on the way down is hardly trained. A training that ends
    elsewhere keeps its last epoch.

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
    def of(cls, target: object, *, adapted: bool) -> Keep:
        """Similarity to the network that training starts from.

        Args:
            target: Debiased CKA, in (0, 1).
            adapted: Whether that network has BatchNorm statistics of the training images.

        Raises:
            UsageError: ``target`` is outside, or no number.
        """
        if isinstance(target, bool) or not isinstance(target, Real):
            raise UsageError(f"--keep is a number between 0 and 1, for example 0.8; found {shortened(repr(target))}.")
        return cls(float(target), "cka_debiased_adapted" if adapted else "cka_debiased")

    @property
    def is_adapted(self) -> bool:
        """Whether that network has BatchNorm statistics of the training images."""
        return self.metric.endswith("adapted")

    @property
    def in_words(self) -> str:
        """For the plan.

        >>> Keep(0.8).in_words
        'debiased CKA of 0.8 on val, within 0.03'
        """
        return f"{compared_in_words(adapted=self.is_adapted)} of {self.target:g} on val, within {TOLERANCE:g}"

    def distance(self, metrics: Mapping[str, float]) -> float:
        """From the target; infinite where the similarity is not defined."""
        similarity = metrics.get(self.metric, math.nan)
        return math.inf if math.isnan(similarity) else abs(similarity - self.target)

    def is_near(self, metrics: Mapping[str, float]) -> bool:
        """Whether the target counts as reached."""
        return self.distance(metrics) <= TOLERANCE
