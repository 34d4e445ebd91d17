"""What ``select_model`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crossgraft.errors import UsageError
from crossgraft.models.classifier import Classifier
from crossgraft.records.base import Record
from crossgraft.result import EXIT_PARTIAL
from crossgraft.select.record import SelectionPlanRecord, SelectionRecord
from crossgraft.select.words import selected_in_words, selection_plan_in_words
from crossgraft.tune.result import FineTuningResult, ModelResult
from crossgraft.tune.saving.saved_model import SavedModel

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SelectionResult(ModelResult[SelectionRecord]):
    """One fine-tuned model and what speaks for it: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
        tuned: The fine-tuning of the selected model; None where only a plan was made.
    """

    plan: SelectionPlanRecord = field(kw_only=True)
    tuned: FineTuningResult | None = field(default=None, kw_only=True)

    @property
    def fitted(self) -> SavedModel | None:
        """The selected model as ``load_saved_model`` would read it; None where only a plan was made."""
        return None if self.tuned is None else self.tuned.fitted

    @property
    def classifier(self) -> Classifier | None:
        """The network of the selected model in eval mode on the CPU; None where only a plan was made."""
        return None if self.tuned is None else self.tuned.classifier

    @property
    def fine_tuning(self) -> FineTuningResult | None:
        """That of the selected model; None where only a plan was made."""
        return self.tuned

    @property
    def model(self) -> SavedModel:
        """The selected model, with all that is needed to predict.

        Raises:
            UsageError: Only a plan was made.
        """
        if self.fitted is None:
            raise UsageError("This selection has no model to predict with: only the plan was made.")
        return self.fitted

    @property
    def shown(self) -> Record:
        """The record, or the plan."""
        return self.found or self.plan

    @property
    def exit_code(self) -> int:
        """6 where a training failed."""
        return EXIT_PARTIAL if self.found and any(row.state == "failed" for row in self.found.candidates) else 0

    def summary(self) -> str:
        """The selected model, or the plan."""
        return selection_plan_in_words(self.plan) if self.found is None else selected_in_words(self.found)

    def places(self) -> Mapping[str, object]:
        """The model, and the report."""
        saved = None if self.found is None else self.found.saved_model
        model = {} if self.out is None or saved is None else {"Model": self.out / saved}
        return {**model, **super().places()}

    def to_frame(self) -> pd.DataFrame:
        """One row per model: what became of it, why, and what val says of it; the selected one first."""
        import pandas as pd

        columns = ["name", "state", "reason", "place", "expected", "val", "standard_error", "probability_better"]
        columns += ["num_parameters", "booked_seconds"]
        rows = [row.model_dump(include=set(columns)) for row in self.record.candidates]
        return pd.DataFrame(rows, columns=columns)
