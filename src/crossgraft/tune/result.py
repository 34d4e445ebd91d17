"""What ``fine_tune`` returns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crossgraft.errors import UsageError
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import metric_in_words
from crossgraft.models.classifier import Classifier
from crossgraft.options.command import COMMANDS
from crossgraft.records.base import Record
from crossgraft.result import EXIT_PARTIAL, RecordT, Result
from crossgraft.tune.engine.gradient_norms import FILE_NAME as NORMS_FILE
from crossgraft.tune.engine.gradient_norms import GradientNorms
from crossgraft.tune.epochs_record import EpochRow
from crossgraft.tune.planning.plan import Plan
from crossgraft.tune.predictions import Predictions
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.saving.saved_model import SavedModel

if TYPE_CHECKING:
    import pandas as pd

FOLD_MODELS = (
    "with folds there is one model a fold, in folds/fold-0/model and so on; for one model of all images, run again "
    "without --folds"
)

_SOMETIMES = ("val_cka_adapted", "val_cka_debiased_adapted")
"""Columns of epochs that are left out where no row has a value."""


@dataclass(frozen=True, eq=False, repr=False)
class ModelResult(Result[RecordT]):
    """A result that hands one fine-tuned model over."""

    @property
    @abstractmethod
    def model(self) -> SavedModel:
        """The model, with all that is needed to predict."""

    @property
    @abstractmethod
    def fine_tuning(self) -> FineTuningResult | None:
        """The fine-tuning that the model came of; None where only a plan was made."""

    def predict(self, images: object, **options: Any) -> Predictions:
        """What the model says about images; nothing needs to have been written for it.

        Args:
            images: What ``crossgraft.predict`` takes: a file, a folder, a table, a list of files, a DataFrame with a column of
                paths, a ``Dataset``, arrays, or images of Pillow.
            **options: Keywords of ``crossgraft.predict``.

        Raises:
            UsageError: There is no single model: only a plan was made, or there are folds.
            DataError: There are no images, or some cannot be used.
        """
        return COMMANDS.get("predict").function(self.model, images, **options)


@dataclass(frozen=True, eq=False, repr=False)
class FineTuningResult(ModelResult[TuningRecord]):
    """A fine-tuned model: ``record`` holds every number.

    Attributes:
        plan: What was planned; all there is after ``plan=True``.
        classifier: The selected model in eval mode on the CPU; None with folds, which give one model each.
        fitted: The same with its classes, temperature and thresholds, as ``load_saved_model`` would read it; None with folds.
        norms: Norms of gradients of each training, by its name; empty without ``log_gradient_norms``.
    """

    plan: Plan = field(kw_only=True)
    classifier: Classifier | None = None
    fitted: SavedModel | None = None
    norms: Mapping[str, GradientNorms] = field(default_factory=dict[str, GradientNorms], kw_only=True)

    @property
    def fine_tuning(self) -> FineTuningResult:
        """This result."""
        return self

    @property
    def model(self) -> SavedModel:
        """The model, with all that is needed to predict.

        Raises:
            UsageError: There is no single model: only a plan was made, or there are folds.
        """
        if self.fitted is None:
            reason = "only the plan was made" if self.found is None else FOLD_MODELS
            raise UsageError(f"This fine-tuning has no model to predict with: {reason}.")
        return self.fitted

    @property
    def tuning(self) -> TuningRecord | None:
        """The record; None where only a plan was made."""
        return self.found

    @property
    def shown(self) -> Record:
        """The record, or the plan."""
        return self.found or self.plan.record

    @property
    def exit_code(self) -> int:
        """6 where some trainings failed."""
        return EXIT_PARTIAL if self.found and any(row.state == "failed" for row in self.found.grid) else 0

    def summary(self) -> str:
        """The primary metric on held-out rows, or the plan."""
        if self.found is None:
            return self.plan.summary()
        value = "" if self.headline is None else f": {metric_in_words(self.headline)}"
        return f"{self.record.model.name} on {self.record.dataset.name}{value}"

    def places(self) -> Mapping[str, object]:
        """The model, and the report."""
        saved = None if self.found is None else self.found.saved_model
        model = {} if self.out is None or saved is None else {"Model": self.out / saved}
        return {**model, **super().places()}

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

    def gradient_norms(self) -> pd.DataFrame:
        """One row per training, step and building block: L2 norm of the gradient before clipping, and its moving average.

        No rows without ``log_gradient_norms``.
        """
        import pandas as pd

        rows = [(job, *row) for job, norms in self.norms.items() for row in norms.rows()]
        return pd.DataFrame(rows, columns=["job", "step", "block", "norm", "ema"])

    def tables(self) -> dict[str, pd.DataFrame]:
        """Tables of a run directory, by file name."""
        norms = {NORMS_FILE: self.gradient_norms()} if self.norms else {}
        return {"history.csv": self.history(), "metrics.csv": self.to_frame(), **norms}

    def _most_important(self) -> pd.DataFrame:
        frame = self.to_frame()
        columns = ["split", "metric", "value", "low", "high", "num_images"]
        return frame.loc[frame["class_name"].isna() & frame["attribute"].isna(), columns]


def epoch_frame(history: Sequence[EpochRow]) -> pd.DataFrame:
    """One row per epoch; each term of the loss has a column, and so has what only BatchNorm or ``--keep`` bring."""
    import pandas as pd

    absent = {name for name in _SOMETIMES if all(getattr(row, name) is None for row in history)}
    return pd.DataFrame([{**row.model_dump(exclude={"terms", *absent}), **row.terms} for row in history])
