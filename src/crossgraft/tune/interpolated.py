"""What ``interpolate_runs`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from crossgraft.records import InterpolationRecord
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Interpolated:
    """The curve between two runs: ``record`` holds every number.

    Attributes:
        record: One point an α.
    """

    record: InterpolationRecord

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

    def to_json(self) -> str:
        """The record as one JSON document."""
        return self.record.model_dump_json()

    def __repr__(self) -> str:
        """One line."""
        picked = self.record.picked
        where = "" if picked is None else f", alpha {picked.alpha:g} picked on val"
        return (
            f"Interpolated({self.record.model!r} on {self.record.dataset!r}: {len(self.record.points)} networks{where})"
        )

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        shown = frame.loc[
            frame["metric"] == self.record.primary_metric,
            ["alpha", "split", "metric", "value", "low", "high", "cka", "cka_debiased", "picked"],
        ]
        table = shown.to_html(index=False, escape=True, float_format="{:.3f}".format)
        return visible(f"<p>{escape(repr(self))}</p>{table}", keep="\n")
