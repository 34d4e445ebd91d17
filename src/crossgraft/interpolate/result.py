"""What ``interpolate`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from crossgraft.data.describe import describe_dataset
from crossgraft.interpolate.record import InterpolationRecord
from crossgraft.progress import Reporter
from crossgraft.result import Result
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.parts import TuningRows

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
                "cka": None,
                "cka_debiased": None,
                **point.similarity,
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


def about_images(record: InterpolationRecord, rows: TuningRows, *, has_probe: bool) -> InterpolationRecord:
    """The record with the images that it was measured on, their split, and the kind of head at α = 0."""
    images = describe_dataset(replace(rows.dataset, split_method=rows.split_in_words))
    return record.model_copy(
        update={
            "has_probe": has_probe,
            "images": images,
            "leakage": rows.leakage,
            "num_shared_groups": rows.num_shared_groups,
        }
    )


def with_look(
    record: InterpolationRecord, rows: TuningRows, measured: Sequence[str], reporter: Reporter
) -> InterpolationRecord:
    """The record with its place in the ledger; all of its networks together are one look.

    Args:
        record: What was measured.
        rows: All rows, with the part of each.
        measured: What names the networks: fingerprints of both ends, and what lies between them.
        reporter: Reporter of a ledger that cannot be used.
    """
    primary = None if record.picked is None else record.picked.metric(record.primary_metric)
    looks = count_test_look(
        rows.as_they_came, rows.parts[0].test, measured, primary, command="interpolate", reporter=reporter
    )
    return record.model_copy(update={"looks": looks})
