"""What ``evaluate_published`` returns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crossgraft.published.record import PublishedRecord
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class PublishedResult(Result[PublishedRecord]):
    """Published results that were evaluated again: ``record`` holds every number."""

    def summary(self) -> str:
        """The title, and one conclusion a scenario."""
        return " ".join([f"{self.record.title}.", *(scenario.conclusion for scenario in self.record.scenarios)])

    def to_frame(self) -> pd.DataFrame:
        """One row per scenario and method: the mean over targets of every measure, each with its interval."""
        import pandas as pd

        rows: list[dict[str, object]] = []
        for scenario in self.record.scenarios:
            for method in scenario.methods:
                row: dict[str, object] = {"scenario": scenario.name, "method": method.title, "role": method.role}
                means = {"weighted_kendall": method.mean, "gain": method.gain}
                for name, mean in {**means, "regret": method.regret, "residual": method.residual}.items():
                    low, high = (None, None) if mean is None else (mean.low, mean.high)
                    row |= {name: None if mean is None else mean.value, f"{name}_low": low, f"{name}_high": high}
                rows.append(row)
        return pd.DataFrame(rows)

    def __getattr__(self, name: str) -> Any:
        """Fields of the record itself, which is what ``evaluate_published`` used to return."""
        if name not in PublishedRecord.model_fields:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn(
            f"evaluate_published(…).{name} goes with the next release: write evaluate_published(…).record.{name}.",
            DeprecationWarning,
            stacklevel=2,
        )
        return getattr(self.record, name)
