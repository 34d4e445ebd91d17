"""What ``rank_models`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.records import RankingRecord
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Ranking:
    """A ranked zoo: ``record`` holds every number, ``report`` the HTML report if a run directory was written."""

    record: RankingRecord
    out: Path | None = None
    report: Path | None = None

    @property
    def advice(self) -> str:
        """What the numbers support, in words."""
        return self.record.advice

    def to_frame(self) -> pd.DataFrame:
        """One row per model and score, best first by the primary score."""
        import pandas as pd

        record = self.record
        order = {row.model: i for i, row in enumerate(record.ranking(record.primary_score).rows)}
        ranks = {(ranking.score, row.model): row.rank for ranking in record.rankings for row in ranking.rows}
        rows = [
            {
                "model": cell.model,
                "role": record.model(cell.model).role,
                "score": cell.score,
                "rank": ranks[cell.score, cell.model],
                "value": cell.value,
                "low": cell.low,
                "high": cell.high,
                "largest_shuffled": cell.largest_shuffled,
                "above_shuffled": cell.above_shuffled,
                "seconds": cell.seconds,
                "peak_bytes": cell.peak_bytes,
                "reason": cell.reason or cell.no_interval_reason,
            }
            for cell in record.cells
        ]
        frame = pd.DataFrame(rows)
        frame["rank"] = frame["rank"].astype("Int64")
        return frame.sort_values("model", key=lambda names: names.map(order), kind="stable", ignore_index=True)

    def to_json(self) -> str:
        """The record as one JSON document with ``schema_version``."""
        return self.record.model_dump_json()

    def __repr__(self) -> str:
        """One line: the record holds thousands of numbers."""
        return f"Ranking({self.record.dataset.name!r}, by={self.record.primary_score!r}, advice={self.advice!r})"

    def _repr_html_(self) -> str:
        frame = self.to_frame()
        primary = frame[frame["score"] == self.record.primary_score]
        return visible(f"<p>{escape(self.advice)}</p>{primary.to_html(index=False, escape=True)}", keep="\n")
