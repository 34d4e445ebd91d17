"""What ``interpolate`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from crossgraft.records import InterpolationRecord
from crossgraft.result import Result

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Interpolated(Result[InterpolationRecord]):
    """The curve between two runs, one point an α: ``record`` holds every number."""

    def summary(self) -> str:
        """Model and data, how many networks were measured, and which one val picks."""
        record = self.record
        where = "" if record.picked is None else f", alpha {record.picked.alpha:g} picked on val"
        return f"{record.model} on {record.dataset}: {len(record.points)} networks{where}"

    def to_frame(self) -> pd.DataFrame:
        """One row for each α, part of the data and metric."""
        import pandas as pd

        rows = [
            {
                "alpha": point.alpha,
                "split": row.split,
                "metric": row.metric,
                **{name: getattr(row, name) for name in ("value", "low", "high", "num_images")},
                "cka": point.similarity.get("cka"),
                "cka_debiased": point.similarity.get("cka_debiased"),
                "parameter_distance": point.parameter_distance,
                "picked": point.alpha == self.record.picked_alpha,
            }
            for point in self.record.points
            for row in point.metrics
        ]
        return pd.DataFrame(rows)

    def _most_important(self) -> pd.DataFrame:
        frame = self.to_frame()
        columns = ["alpha", "split", "metric", "value", "low", "high", "cka", "cka_debiased", "picked"]
        return frame.loc[frame["metric"] == self.record.primary_metric, columns]
