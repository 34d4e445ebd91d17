"""What ``compare_fine_tunings`` returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crossgraft.records.base import Record
from crossgraft.result import EXIT_PARTIAL, Result
from crossgraft.variants.record import ComparisonPlanRecord, FineTuningComparisonRecord
from crossgraft.variants.study import plans_in_words
from crossgraft.variants.words import answer_in_words

if TYPE_CHECKING:
    import pandas as pd

_OF_BATCH_NORM = ("cka_adapted", "cka_debiased_adapted", "batch_norm")
"""Columns that are left out where the network has no BatchNorm."""


@dataclass(frozen=True, eq=False, repr=False)
class FineTuningComparison(Result[FineTuningComparisonRecord]):
    """Several fine-tunings of one model on the same images: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
    """

    plan: ComparisonPlanRecord = field(kw_only=True)

    @property
    def comparison(self) -> FineTuningComparisonRecord | None:
        """The record; None where only a plan was made."""
        return self.found

    @property
    def shown(self) -> Record:
        """The record, or the plan."""
        return self.found or self.plan

    @property
    def exit_code(self) -> int:
        """6 where some trainings failed."""
        return EXIT_PARTIAL if self.found and any(row.state == "failed" for row in self.found.trainings) else 0

    def summary(self) -> str:
        """The answer in a few sentences, or the plan."""
        return plans_in_words(self.plan) if self.found is None else answer_in_words(self.found)

    def to_frame(self) -> pd.DataFrame:
        """One row per variant, the best first: metric, similarity, time, differences, each with its interval."""
        import pandas as pd

        variants = self.record.variants
        absent = {name for name in _OF_BATCH_NORM if all(getattr(row, name) is None for row in variants)}
        return pd.DataFrame([_flat(row.model_dump(exclude=absent)) for row in variants])

    def trainings(self) -> pd.DataFrame:
        """One row a training: variant, seed, every metric on test, similarity, seconds."""
        import pandas as pd

        rows: list[dict[str, object]] = []
        for row in self.record.trainings:
            flat: dict[str, object] = row.model_dump(exclude={"metrics", "similarity", "picked"})
            flat |= {name: row.similarity.get(name) for name in ("cka", "cka_debiased")} | row.similarity
            for metric in row.metrics:
                flat |= {
                    metric.metric: metric.value,
                    f"{metric.metric}_low": metric.low,
                    f"{metric.metric}_high": metric.high,
                }
            flat["picked"] = ",".join(f"{name}={value}" for name, value in row.picked.items())
            rows.append(flat)
        return pd.DataFrame(rows)

    def _most_important(self) -> pd.DataFrame:
        columns = ["variant", "metric", "metric_low", "metric_high", "cka", "cka_debiased", "time_ratio", "difference"]
        return self.to_frame().reindex(columns=columns)


def _flat(row: dict[str, object]) -> dict[str, object]:
    """Values with an interval become three columns."""
    flat: dict[str, object] = {}
    for name, value in row.items():
        if value is None and name in _OF_BATCH_NORM[:2]:
            flat |= dict.fromkeys((name, f"{name}_low", f"{name}_high"))
        elif isinstance(value, dict) and "low" in value:
            flat |= {name: value["value"], f"{name}_low": value["low"], f"{name}_high": value["high"]}  # pyright: ignore[reportUnknownArgumentType]
        elif name == "settings" and isinstance(value, dict):
            flat[name] = "; ".join(f"{key} {text}" for key, text in value.items())  # pyright: ignore[reportUnknownVariableType]
        elif name == "not_separable_from" and isinstance(value, list):
            flat[name] = "; ".join(map(str, value))  # pyright: ignore[reportUnknownArgumentType]
        elif name != "sweep":
            flat[name] = value
    return flat
