"""The rule that picks the model: a named object that is printed beside every result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from crossgraft.errors import UnknownNameError


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
