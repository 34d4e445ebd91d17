"""Fold × grid point: each training has a folder of its own; what is done is read back, and one that fails loses no other."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

from crossgraft.errors import DataError
from crossgraft.models.classifier import Classifier
from crossgraft.paths import refuse_for_weights
from crossgraft.records.base import Record
from crossgraft.running.command_line import portable_name
from crossgraft.running.jobs import Job, Outcome, Work
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tune.engine.contract import TrainedEpoch, TrainingResult
from crossgraft.tune.engine.gradient_norms import FILE_NAME, GradientNorms, read_gradient_norms
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.trainer import train
from crossgraft.tune.planning.choices import KEEP_FACTOR, GridPoint, GridTraining
from crossgraft.tune.planning.in_force import InForce
from crossgraft.tune.planning.preparation import Preparation, settings_at
from crossgraft.tune.planning.rows import FoldData, make_feed
from crossgraft.tune.record import EpochRow, GridPointRecord
from crossgraft.tune.tracking import JobProgress


def epoch_rows(training: GridTraining, history: Sequence[TrainedEpoch], *, metric: str, best_epoch: int) -> list[EpochRow]:
    """One row per epoch of one training; epochs count from 1, those of the head alone first."""
    num_head = sum(row.phase == "head" for row in history)
    return [
        EpochRow(
            job=training.name,
            epoch=number,
            stage=row.phase,
            learning_rate=row.learning_rate,
            train_loss=number_or_none(row.terms.get("loss")),
            terms={name: value for name, value in row.terms.items() if "/" in name},
            val_loss=number_or_none(row.metrics.get("loss")),
            val_metric=number_or_none(row.metrics.get(metric)),
            val_cka=number_or_none(row.metrics.get("cka")),
            val_cka_debiased=number_or_none(row.metrics.get("cka_debiased")),
            val_cka_adapted=number_or_none(row.metrics.get("cka_adapted")),
            val_cka_debiased_adapted=number_or_none(row.metrics.get("cka_debiased_adapted")),
            metric_reason=None if number_or_none(row.metrics.get(metric)) is not None else _NO_METRIC[bool(row.metrics)],
            is_best=row.phase == "all" and number - num_head - 1 == best_epoch,
            seconds=row.seconds,
        )
        for number, row in enumerate(history, start=1)
    ]


_NO_METRIC = {True: "not defined on the validation rows", False: "there are no validation rows"}
"""Whether an epoch has metrics at all → why it has none of the wanted name."""


def number_or_none(value: float | None) -> float | None:
    """None for what is not a number."""
    return None if value is None or value != value else float(value)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file.

    Raises:
        DataError: The file is gone or damaged.
    """
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"Cannot read the weights {path}: {error}. Use --overwrite to train again.") from error


class JobRecord(Record):
    """``result.json`` of a finished training."""

    key: str
    point: GridPointRecord
    history: list[EpochRow]
    resumed: bool = False


@dataclass(frozen=True, eq=False)
class Trained:
    """A training that is done.

    Attributes:
        training: The training that was done.
        record: How it went.
        load: Gives the weights that were kept; raises ``DataError`` where they are gone or damaged.
        gradient_norms: Norms of the gradient by step; None where they were not asked for.
    """

    training: GridTraining
    record: JobRecord
    load: Callable[[], dict[str, Tensor]]
    gradient_norms: GradientNorms | None = None

    @property
    def kept_epoch(self) -> EpochRow:
        """The epoch whose weights were kept."""
        return next(row for row in self.record.history if row.is_best)


TrainingOutcome = Outcome[GridTraining, Trained]


def point_of(outcome: TrainingOutcome) -> GridPointRecord:
    """The row of a training in the table of the grid; of a failed one with its reason."""
    if outcome.result is not None:
        return outcome.result.record.point
    training = outcome.job.spec
    return GridPointRecord(
        job=training.name,
        fold=None if training.domain is not None else training.fold,
        values=dict(training.point),
        state="failed",
        reason=outcome.reason,
        seconds=outcome.seconds,
    )


@dataclass(eq=False)
class TrainingWork(Work[GridTraining, Trained]):
    """Trains on the rows of one fold, every time from the same start.

    Attributes:
        prepared: Start, plug-ins, settings and rule; stays as it is.
        data: Data of the fold.
        run: Run directory, or None: then nothing is written, and weights stay in memory.
        progress: Shows each training.
    """

    prepared: Preparation
    data: FoldData
    run: RunDirectory | None = None
    progress: JobProgress | None = None

    def job(self, point: GridPoint) -> Job[GridTraining]:
        """Job of one point of the grid."""
        training = GridTraining(self.data.fold, point, self.data.left_out)
        return Job(training.name, training, self._key(point))

    def around(self, job: Job[GridTraining]) -> AbstractContextManager[object]:
        """Shown as a stage."""
        return nullcontext() if self.progress is None else self.progress.stage(job.spec, self.data, self.prepared.settings)

    def read_back(self, job: Job[GridTraining]) -> Trained | None:
        """The training of an earlier attempt, whose weights are read when they are needed."""
        if self.run is None:
            return None
        record = self.run.read_record(f"{_folder(job.name)}/result.json", JobRecord)
        path = self.run.path / _folder(job.name) / "weights.safetensors"
        if record is None or record.key != job.key or not path.is_file():
            return None
        norms = self._norms_file(job)
        if norms is not None and not norms.is_file():
            return None
        shutil.rmtree(path.parent / "checkpoint", ignore_errors=True)  # of an attempt killed before it did this
        of_blocks = None if norms is None else read_gradient_norms(norms)
        return Trained(job.spec, record, load=lambda: read_weights(path), gradient_norms=of_blocks)

    def do(self, job: Job[GridTraining]) -> Trained:
        """Train, from the last checkpoint if there is one; that of a training that fails stays.

        Raises:
            CrossgraftError: The training failed.
        """
        classifier, result, seconds = self._train(job)
        trained = self._keep(job, self._record(job, result, seconds), classifier, result.gradient_norms)
        if (folder := self._checkpoint(job)) is not None:
            shutil.rmtree(folder, ignore_errors=True)  # nothing is left to resume
        return trained

    def _checkpoint(self, job: Job[GridTraining]) -> Path | None:
        return None if self.run is None else self.run.path / _folder(job.name) / "checkpoint"

    def _train(self, job: Job[GridTraining]) -> tuple[Classifier, TrainingResult, float]:
        if (folder := self._checkpoint(job)) is not None:
            refuse_for_weights(folder)
        prepared, plugins = self.prepared, self.prepared.plugins
        settings = settings_at(prepared, job.spec.point)
        classifier = self.data.networks.start()
        start = time.perf_counter()
        result = train(
            classifier,
            make_feed(self.data, plugins, settings),
            prepared.selection,
            loss=self.data.loss,
            evaluate=self.data.evaluate,
            rule=prepared.rule,
            stop_rule=prepared.stop_rule,
            settings=settings,
            regularizers=copy.deepcopy(plugins.regularizers),
            features_are_fixed=plugins.method.features_are_fixed,
            keep=prepared.keep,
            objective=copy.deepcopy(plugins.objective),
            num_domains=max(1, len(self.data.domain_names)),
            feature_transforms=copy.deepcopy(plugins.feature_transforms),
            checkpoint_folder=folder,
            gradient_norms_file=self._norms_file(job),
            configuration={"key": job.key, **self.data.networks.start_in_checkpoints},
            on_step=None if self.progress is None else self.progress.on_step,
            on_epoch=None if self.progress is None else self.progress.on_epoch,
        )
        return classifier, result, time.perf_counter() - start

    def _record(self, job: Job[GridTraining], result: TrainingResult, seconds: float) -> JobRecord:
        main = [row for row in result.history if row.phase == "all"]
        best, metric = main[result.best_epoch], self.prepared.rule.metric
        point = GridPointRecord(
            job=job.name,
            fold=None if job.spec.domain is not None else job.spec.fold,
            values=dict(job.spec.point),
            state="done",
            val_metric=number_or_none(best.metrics.get(metric)),
            val_loss=number_or_none(best.metrics.get("loss")),
            best_epoch=result.best_epoch + 1,
            num_epochs=len(main),
            stopped_early=result.stopped_early,
            seconds=seconds,
        )
        history = epoch_rows(job.spec, result.history, metric=metric, best_epoch=result.best_epoch)
        return JobRecord(key=job.key, point=point, history=history, resumed=result.resumed)

    def _norms_file(self, job: Job[GridTraining]) -> Path | None:
        """Where the norms of gradients stand; None where they were not asked for, or nothing is written."""
        asked = self.prepared.settings.log_gradient_norms
        return self.run.path / _folder(job.name) / FILE_NAME if asked and self.run is not None else None

    def _keep(self, job: Job[GridTraining], record: JobRecord, classifier: Classifier, norms: GradientNorms | None) -> Trained:
        state = {name: value.detach().to("cpu").contiguous().clone() for name, value in classifier.state_dict().items()}
        if self.run is None:
            return Trained(job.spec, record, load=lambda: state, gradient_norms=norms)
        if norms is not None:
            self.run.write(f"{_folder(job.name)}/{FILE_NAME}", norms.csv)
        path = self.run.write(f"{_folder(job.name)}/weights.safetensors", safetensors.torch.save(state))
        self.run.write_record(f"{_folder(job.name)}/result.json", record)
        return Trained(job.spec, record, load=lambda: read_weights(path), gradient_norms=norms)

    def _key(self, point: GridPoint) -> str:
        """Hash of everything that decides the result; where a run computes and how often it saves is not meant to.

        Its bytes are those of earlier versions, whose trainings are read back. So ``settings`` is one text, a plug-in is there
        where it is not at its default, and an option that came later is there under its own name.
        """
        prepared, plugins, request = self.prepared, self.prepared.plugins, self.prepared.request
        now = InForce.at(prepared, point)
        decisive = {
            **now.further(),
            "model": request.spec.describe(),
            "seed": request.options.seed,
            **({} if request.adapter is None else {"adapter": request.adapter.fingerprint}),
            "data": self.data.fingerprint,
            "plugins": [plugin.spelling for plugin in plugins.describe()],
            "rule": repr(prepared.rule),
            "sampler": plugins.sampler,
            "flip": plugins.augmentation.flip,
            "settings": now.settings.first_in_words,
            **({} if prepared.keep is None else {"keep": prepared.keep.target, "keep_factor": point.get(KEEP_FACTOR, 1.0)}),
            **({} if prepared.batch_norm.mode == "train" else {"batch norm": prepared.batch_norm.mode}),
            **{each.name: meaning for each in plugins.regularizers if (meaning := getattr(each, "definition", None))},
        }
        return hashlib.sha256(json.dumps(decisive, sort_keys=True, default=str).encode()).hexdigest()[:20]


def pick(trained: Sequence[Trained], rule: SelectionRule, keep: Keep | None = None) -> Trained:
    """The point of a grid with the best value of the rule's metric on the validation rows, the first of equal ones.

    With ``keep``, of those that end nearest to its similarity.
    """
    best = trained[0]
    for each in trained[1:]:
        nearer = 0.0 if keep is None else _miss(best, keep) - _miss(each, keep)
        if nearer > 0 or (nearer == 0 and rule.is_better(_comparable(each), _comparable(best))):
            best = each
    return best


def trained_network(start: Classifier, trained: Trained) -> Classifier:
    """The start with the weights of a training, in their number type.

    ``start`` is a copy, which is changed.

    Raises:
        DataError: Its weights are gone or damaged.
    """
    state = trained.load()
    start.to(state["head.weight"].dtype).load_state_dict(state)
    return start


def _miss(trained: Trained, keep: Keep) -> float:
    """Distance from the similarity that training was to end at, 0 near it; a large one where it is not defined."""
    row = trained.kept_epoch
    similarities = {"cka_debiased": row.val_cka_debiased, "cka_debiased_adapted": row.val_cka_debiased_adapted}
    metrics = {name: value for name, value in similarities.items() if value is not None}
    return 0.0 if keep.is_near(metrics) else min(keep.distance(metrics), 2.0)


def _comparable(trained: Trained) -> float:
    value = trained.record.point.val_metric
    return float("nan") if value is None else value


def is_trained(run: RunDirectory, name: str) -> bool:
    """Whether an earlier attempt seems to have finished the training of this name; ``read_back`` knows for certain."""
    return (run.path / _folder(name) / "result.json").is_file()


def _folder(name: str) -> str:
    return f"jobs/{portable_name(name)}"
