"""What ``fine_tune`` returns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any

from crossgraft.errors import DataError, UsageError
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import metric_in_words
from crossgraft.models import ModelSpec
from crossgraft.models.classifier import Classifier
from crossgraft.options._option import options_of
from crossgraft.options.command import COMMANDS
from crossgraft.progress import Reporter
from crossgraft.rank.record import KnownResult
from crossgraft.rank.results_store import add_known_results, read_known_results
from crossgraft.records.base import Record
from crossgraft.result import EXIT_PARTIAL, RecordT, Result
from crossgraft.running.verb import secondary
from crossgraft.tune.engine.gradient_norms import FILE_NAME as NORMS_FILE
from crossgraft.tune.engine.gradient_norms import GradientNorms
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.choices import KEEP_FACTOR
from crossgraft.tune.planning.leave_out import ORACLE_MARK
from crossgraft.tune.planning.plan import Plan
from crossgraft.tune.predictions import Predictions
from crossgraft.tune.record import DomainMetricRecord, EpochRow, TuningRecord, UnseenDomainsRecord
from crossgraft.tune.saving.save_model import NOT_STATED
from crossgraft.tune.saving.saved_model import SavedModel
from crossgraft.words.formatting import counted

if TYPE_CHECKING:
    import pandas as pd


_MEAN, _WORST = "(mean)", "(worst)"
"""In the column of domains: what is about all of them."""


def look_at_known_results(reporter: Reporter) -> None:
    """A damaged file comes to light before hours of training, so that it can be repaired meanwhile."""
    try:
        read_known_results()
    except DataError as error:
        reporter.warn(f"{error} Training goes on; its result can only be added if the file is sound by then.")


def keep_known_result(record: TuningRecord, spec: ModelSpec, rows: TuningRows, options: TuneOptions, reporter: Reporter) -> None:
    """Add the result to the user's known ones; a warning where that cannot be done. Arguments as of ``known_result``."""
    result = known_result(record, spec, rows, options)
    if result is not None:
        with secondary("The result was not added to the known results", reporter):
            add_known_results([result])


def known_result(record: TuningRecord, spec: ModelSpec, rows: TuningRows, options: TuneOptions) -> KnownResult | None:
    """The primary metric on unseen rows; None where it has no value, or training did not begin with the pretrained weights.

    Nor is there one of edited images, which say little of the model on others, or of models that were picked on images of the
    domain that they are tested on (``oracle``).

    Only equal protocols are compared, so the protocol says everything that differs between two ways to tune one model, and
    nothing that differs between models.
    """
    primary = record.headline
    if primary is None or primary.value is None or record.model.from_scratch:
        return None
    if record.unseen_domains is not None and record.unseen_domains.is_oracle:
        return None
    if options.adapter is not None or record.edits is not None:
        return None
    model, _, source = (spec.known_as or "").partition("/")
    return KnownResult(
        model=model or record.model.name,
        weights=record.model.weights_fingerprint,
        source=source or NOT_STATED,
        target=record.dataset.name,
        target_fingerprint=rows.ranked_fingerprint,
        protocol=protocol_of(record, options),
        metric=primary.metric,
        value=primary.value,
        low=primary.low,
        high=primary.high,
        origin="crossgraft tune",
    )


def protocol_of(record: TuningRecord, options: TuneOptions) -> str:
    """How a model was tuned and tested, in words that are the same for every model of one study.

    Settings that were asked for belong to the protocol.
    """
    slots = [plugin.used for plugin in record.plugins]
    head_first = ["head first"] if any(row.stage == "head" for row in record.history) else []
    asked = [f"{name} {getattr(options, name)}" for name in _asked(options)]
    points = dict.fromkeys(point for row in record.grid if (point := _in_words(row.values)))
    grid = [f"best of {' or '.join(points)}"] if points else []
    how = ", ".join([*slots, *head_first, *asked, *grid])
    return f"{how}; {_rows_in_words(record, options)}, picked by {record.selection_metric}"


def _asked(options: TuneOptions) -> list[str]:
    """Settings that somebody asked for; what was left open follows from the model by one fixed rule."""
    return [
        name
        for name, each in options_of(type(options)).items()
        if each.about.in_protocol and getattr(options, name) not in (None, each.default, _USUAL.get(name))
    ]


def _left_out_in_words(unseen: UnseenDomainsRecord) -> str:
    """What was trained on where domains were left out, and what was tested."""
    images = counted(round(fmean(each.num_train for each in unseen.domains)), "training image")
    if unseen.is_each:
        return f"{images} a training, test each of {counted(len(unseen.domains), 'domain')} by {unseen.column}, mean over them"
    return f"{images}, test all of {unseen.column} {unseen.domains[0].domain}"


_USUAL = {"sampler": "shuffle"}
"""What somebody may ask for that would be chosen anyway; known results have never named it."""


def _rows_in_words(record: TuningRecord, options: TuneOptions) -> str:
    """What was trained on, and what was tested; with folds, the training images of one."""
    if record.unseen_domains is not None:
        return _left_out_in_words(record.unseen_domains)
    if not record.folds:
        of_part = {row.name: row for row in record.splits}
        return f"{counted(of_part['train'].num_images, 'training image')}, test {of_part['test'].origin}"
    of_each = [fold.num_train for fold in record.folds]
    images = counted(record.dataset.num_images, "image")
    if options.fold is not None:
        return f"{counted(of_each[0], 'training image')}, test fold {options.fold} of {options.folds} of {images}"
    return f"{counted(round(fmean(of_each)), 'training image')} a fold, test each of {len(of_each)} folds of {images}"


def _in_words(values: Mapping[str, float | int | str]) -> str:
    """A point of the grid; what --keep found is no setting, and differs between models."""
    return ",".join(f"{name}={value}" for name, value in values.items() if name != KEEP_FACTOR)


DOMAIN_MODELS = (
    "where each domain is left out in turn there is one model for each, in folds/without DOMAIN/model; for one model of images "
    "of all domains, run again without --leave-out"
)
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

    def places(self) -> Mapping[str, object]:
        """The model, and the report."""
        saved: str | None = getattr(self.found, "saved_model", None)
        model = {} if self.out is None or saved is None else {"Model": self.out / saved}
        return {**model, **super().places()}

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
            reason = "only the plan was made" if self.found is None else self.found.saved_model_reason or FOLD_MODELS
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

    @property
    def headline(self) -> MetricRecord | None:
        """The primary metric on held-out rows, with its interval; where every domain was left out in turn, the mean over them."""
        return self.record.headline

    @property
    def primary(self) -> Mapping[str, object]:
        """The primary metric on held-out rows; where every domain was left out in turn, the mean over them."""
        if self.headline is None:
            return {}
        unseen = self.record.unseen_domains
        is_mean = unseen is not None and unseen.is_each
        number = self.headline.number | ({"split": "unseen", "domain": _MEAN} if is_mean else {})
        return number | ({"split": f"{number['split']}{ORACLE_MARK}"} if self.record.is_oracle else {})

    def to_frame(self) -> pd.DataFrame:
        """One row per metric: value, interval, and what it is about; where domains were left out, those of each domain follow."""
        import pandas as pd

        columns = ["split", "metric", "class_name", "attribute", "attribute_value", "value", "low", "high"]
        columns += ["num_images", "num_groups", "reason", "no_interval_reason"]
        rows = [row.model_dump(include=set(columns)) for row in self.record.metrics]
        if (unseen := self.record.unseen_domains) is not None:
            columns.insert(1, "domain")
            rows += _rows_of_domains(unseen)
            mark = ORACLE_MARK if unseen.is_oracle else ""
            rows = [{**row, "split": f"{row['split']}{mark}"} for row in rows]
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


def _rows_of_domains(unseen: UnseenDomainsRecord) -> list[Mapping[str, object]]:
    """One row a number, as in ``metrics.csv``: every metric on each domain, then the primary one over all of them."""
    rows: list[Mapping[str, object]] = []
    for each in unseen.domains:
        rows += [{**row.model_dump(), "split": "unseen", "domain": each.domain} for row in each.metrics]
        rows += _compared(unseen.metric, each.domain, {"seen": each.seen, "seen - unseen": each.gap})
    of_all = {"unseen": unseen.mean, "seen": unseen.seen, "seen - unseen": unseen.gap}
    return [*rows, *_compared(unseen.metric, _MEAN, of_all), *_compared(unseen.metric, _WORST, {"unseen": unseen.worst})]


def _compared(metric: str, domain: str, records: Mapping[str, DomainMetricRecord | None]) -> list[Mapping[str, object]]:
    return [
        {
            **row.model_dump(),  # of the worst domain its name, too
            "split": split,
            "domain": domain,
            "metric": metric,
            "reason": row.reason if row.value is None else None,
            "no_interval_reason": None if row.value is None else row.reason,
        }
        for split, row in records.items()
        if row is not None
    ]


def epoch_frame(history: Sequence[EpochRow]) -> pd.DataFrame:
    """One row per epoch; each term of the loss has a column, and so has what only BatchNorm or ``--keep`` bring."""
    import pandas as pd

    absent = {name for name in _SOMETIMES if all(getattr(row, name) is None for row in history)}
    return pd.DataFrame([{**row.model_dump(exclude={"terms", *absent}), **row.terms} for row in history])
