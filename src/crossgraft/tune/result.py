"""What ``fine_tune`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.records import EpochRow, MetricRecord, TuningRecord
from crossgraft.tune.planning.plan import Plan
from crossgraft.words.metric_words import metric_in_words

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class FineTuningResult:
    """A fine-tuned model: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
        out: Run directory, or None.
        report: The HTML report, if one was written.
        classifier: The selected model in eval mode on the CPU; None with folds, which give one model each.
    """

    plan: Plan
    tuning: TuningRecord | None = None
    out: Path | None = None
    report: Path | None = None
    classifier: Classifier | None = None

    @property
    def record(self) -> TuningRecord:
        """Every number.

        Raises:
            UsageError: Only a plan was made.
        """
        if self.tuning is None:
            raise UsageError("Only the plan was made (plan=True), so there is no result. Look at .plan.summary().")
        return self.tuning

    @property
    def headline(self) -> MetricRecord | None:
        """The primary metric on held-out rows, with its interval."""
        return self.record.metric(self.record.primary_metric)

    def to_frame(self) -> pd.DataFrame:
        """One row per metric: value, interval, and what it is about."""
        import pandas as pd

        columns = ["split", "metric", "class_name", "attribute", "attribute_value", "value", "low", "high"]
        columns += ["num_images", "num_groups", "reason", "no_interval_reason"]
        rows = [row.model_dump(include=set(columns)) for row in self.record.metrics]
        return pd.DataFrame(rows, columns=columns)

    def history(self) -> pd.DataFrame:
        """One row per epoch of each training: learning curves."""
        return epoch_frame(self.record.history)

    def to_json(self) -> str:
        """The record (or the plan) as one JSON document."""
        return self.plan.to_json() if self.tuning is None else self.tuning.model_dump_json()

    def __repr__(self) -> str:
        """One line."""
        if self.tuning is None:
            return f"FineTuningResult(plan of {self.plan.record.num_steps} steps)"
        found = self.headline
        value = "" if found is None else f", {metric_in_words(found)}"
        return f"FineTuningResult({self.tuning.model.name!r} on {self.tuning.dataset.name!r}{value})"

    def _repr_html_(self) -> str:
        if self.tuning is None:
            return f'<pre style="white-space: pre-wrap">{escape(self.plan.summary())}</pre>'
        frame = self.to_frame()
        shown = frame.loc[
            frame["class_name"].isna() & frame["attribute"].isna(),
            ["split", "metric", "value", "low", "high", "num_images"],
        ]
        table = shown.to_html(index=False, escape=True, float_format="{:.3f}".format)
        return f"<p>{escape(repr(self))}</p>{table}"


def epoch_frame(history: Sequence[EpochRow]) -> pd.DataFrame:
    """One row per epoch; each term of the loss has a column."""
    import pandas as pd

    return pd.DataFrame([{**row.model_dump(exclude={"terms"}), **row.terms} for row in history])
