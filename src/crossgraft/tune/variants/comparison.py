"""What ``compare_fine_tunings`` returns."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from crossgraft.errors import UsageError
from crossgraft.records import ComparisonPlanRecord, FineTuningComparisonRecord
from crossgraft.tune.variants.study import plans_in_words
from crossgraft.words.comparison_words import answer_in_words
from crossgraft.words.visible import visible

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class FineTuningComparison:
    """Several fine-tunings of one model on the same images: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
        out: Run directory, or None.
        report: The page, if one was written.
    """

    plan: ComparisonPlanRecord
    comparison: FineTuningComparisonRecord | None = None
    out: Path | None = None
    report: Path | None = None

    @property
    def record(self) -> FineTuningComparisonRecord:
        """Every number.

        Raises:
            UsageError: Only a plan was made.
        """
        if self.comparison is None:
            raise UsageError("Only the plan was made (plan=True), so there is no result. Look at .summary().")
        return self.comparison

    def summary(self) -> str:
        """The answer in a few sentences, or the plan."""
        return plans_in_words(self.plan) if self.comparison is None else answer_in_words(self.comparison)

    def to_frame(self) -> pd.DataFrame:
        """One row per variant, the best first: metric, similarity, time, differences, each with its interval."""
        import pandas as pd

        return pd.DataFrame([_flat(row.model_dump()) for row in self.record.variants])

    def trainings(self) -> pd.DataFrame:
        """One row a training: variant, seed, every metric on test, similarity, seconds."""
        import pandas as pd

        rows: list[dict[str, object]] = []
        for row in self.record.trainings:
            flat: dict[str, object] = row.model_dump(exclude={"metrics", "similarity", "picked"})
            flat |= {name: row.similarity.get(name) for name in ("cka", "cka_debiased")}
            for metric in row.metrics:
                flat |= {
                    metric.metric: metric.value,
                    f"{metric.metric}_low": metric.low,
                    f"{metric.metric}_high": metric.high,
                }
            flat["picked"] = ",".join(f"{name}={value}" for name, value in row.picked.items())
            rows.append(flat)
        return pd.DataFrame(rows)

    def to_json(self) -> str:
        """The record (or the plan) as one JSON document."""
        return self.plan.model_dump_json() if self.comparison is None else self.comparison.model_dump_json()

    def __repr__(self) -> str:
        """One line."""
        if self.comparison is None:
            return f"FineTuningComparison(plan of {self.plan.num_trainings} trainings)"
        record = self.comparison
        return (
            f"FineTuningComparison({len(record.variants)} variants of {record.model.name!r} on {record.dataset.name!r})"
        )

    def _repr_html_(self) -> str:
        if self.comparison is None:
            return f'<pre style="white-space: pre-wrap">{escape(self.summary())}</pre>'
        columns = ["variant", "metric", "metric_low", "metric_high", "cka", "cka_debiased", "time_ratio", "difference"]
        frame = self.to_frame().reindex(columns=columns)
        table = frame.to_html(index=False, escape=True, na_rep="—", float_format="{:.3f}".format)
        return visible(f"<p>{escape(self.summary())}</p>{table}", keep="\n")


def _flat(row: dict[str, object]) -> dict[str, object]:
    """Values with an interval become three columns."""
    flat: dict[str, object] = {}
    for name, value in row.items():
        if isinstance(value, dict) and "low" in value:
            flat |= {name: value["value"], f"{name}_low": value["low"], f"{name}_high": value["high"]}  # pyright: ignore[reportUnknownArgumentType]
        elif name == "settings" and isinstance(value, dict):
            flat[name] = "; ".join(f"{key} {text}" for key, text in value.items())  # pyright: ignore[reportUnknownVariableType]
        elif name == "not_separable_from" and isinstance(value, list):
            flat[name] = "; ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
        elif name != "sweep":
            flat[name] = value
    return flat
