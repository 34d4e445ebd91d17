"""Fold × grid point: each training has a folder of its own; what is done is read back, and one that fails loses no other."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from crossgraft.errors import CrossgraftError, DataError, StorageError
from crossgraft.models.classifier import Classifier
from crossgraft.records import EpochRow, GridPointRecord, Record
from crossgraft.runs import RunDirectory
from crossgraft.runs.names import portable_name
from crossgraft.tune.engine.contract import OnEpoch, OnStep, TrainedEpoch, TrainingResult
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.engine.trainer import train
from crossgraft.tune.methods._method import Selection
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.fold_data import FoldData, make_feed
from crossgraft.tune.planning.grid import GridPoint, point_name


@dataclass(frozen=True)
class Job:
    """One training.

    Attributes:
        fold: From 0; None without folds.
        point: Settings of the grid.
    """

    fold: int | None
    point: GridPoint

    @property
    def name(self) -> str:
        """For tables and folders: ``fold-1 learning_rate=0.001``; ``only`` where there is no other."""
        parts = ["" if self.fold is None else f"fold-{self.fold}", point_name(self.point)]
        return " ".join(part for part in parts if part) or "only"


class JobRecord(Record):
    """``result.json`` of a finished training."""

    key: str
    point: GridPointRecord
    history: list[EpochRow]
    resumed: bool = False


@dataclass(frozen=True, eq=False)
class JobOutcome:
    """A training that was done, now or earlier.

    Attributes:
        job: Which.
        record: How it went.
        load: Gives the weights that were kept; None for a failed one.
        read_back: Whether it was done in an earlier attempt.
    """

    job: Job
    record: JobRecord
    load: Callable[[], dict[str, Tensor]] | None
    read_back: bool = False

    @property
    def is_done(self) -> bool:
        """Did it end with weights?"""
        return self.load is not None

    def weights(self) -> dict[str, Tensor]:
        """Those that were kept.

        Raises:
            CrossgraftError: The training failed.
            DataError: They are gone or damaged.
        """
        if self.load is None:
            raise CrossgraftError(f"The training {self.job.name} left no weights: {self.record.point.reason}")
        return self.load()


@dataclass(eq=False)
class JobRunner:
    """Trains jobs one after the other, from the same start.

    Attributes:
        classifier: The start; stays as it is.
        selection: What is trained.
        plugins: In the slots.
        settings: Without the grid.
        rule: What picks epoch and point.
        run: Run directory, or None: then nothing is written, and weights stay in memory.
        facts: What else decides the result, for the key of each job.
        on_step: Told after each step.
        on_epoch: Told after each epoch.
        num_read_back: Jobs that were done in an earlier attempt.
    """

    classifier: Classifier
    selection: Selection
    plugins: Plugins
    settings: TrainerSettings
    rule: SelectionRule
    run: RunDirectory | None = None
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    on_step: Callable[[Job], OnStep] | None = None
    on_epoch: Callable[[Job], OnEpoch] | None = None
    num_read_back: int = 0

    def run_job(self, job: Job, data: FoldData) -> JobOutcome:
        """Train, or read back what an earlier attempt finished.

        Raises:
            CrossgraftError: The training failed; its last checkpoint stays.
        """
        key = self._key(job, data)
        folder = None if self.run is None else self.run.path / self._folder(job) / "checkpoint"
        finished = self._read_back(job, key)
        if finished is not None:
            self.num_read_back += 1
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was killed before it did this
            return finished
        if folder is not None and self.run is not None and not self.run.resumed:
            shutil.rmtree(folder, ignore_errors=True)  # of a run that --overwrite has replaced
        settings = replace(self.settings, **job.point)
        classifier = copy.deepcopy(self.classifier)
        start = time.perf_counter()
        result = train(
            classifier,
            make_feed(data, self.plugins, settings),
            self.selection,
            loss=data.loss,
            evaluate=data.evaluate,
            rule=self.rule,
            settings=settings,
            regularizers=copy.deepcopy(self.plugins.regularizers),
            features_are_fixed=self.plugins.method.features_are_fixed,
            checkpoint_folder=folder,
            configuration={"key": key},
            on_step=None if self.on_step is None else self.on_step(job),
            on_epoch=None if self.on_epoch is None else self.on_epoch(job),
        )
        record = self._record(job, key, result, time.perf_counter() - start)
        outcome = self._keep(job, record, classifier)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)  # nothing is left to resume
        return outcome

    def run_or_report(self, job: Job, data: FoldData) -> JobOutcome:
        """As ``run_job``, but what goes wrong becomes a reason in the outcome.

        Raises:
            StorageError: A checkpoint or the weights can not be written.
        """
        start = time.perf_counter()
        try:
            return self.run_job(job, data)
        except StorageError:
            raise  # the disk is full: no fault of the point, and the same command goes on from here
        except (CrossgraftError, torch.OutOfMemoryError, RuntimeError) as error:
            # RuntimeError is what torch raises of a network that can not take a batch.
            reason = " ".join(str(error).split()) or type(error).__name__
            seconds = time.perf_counter() - start
            point = GridPointRecord(
                job=job.name, fold=job.fold, values=dict(job.point), state="failed", reason=reason, seconds=seconds
            )
            return JobOutcome(job, JobRecord(key=self._key(job, data), point=point, history=[]), load=None)

    def _record(self, job: Job, key: str, result: TrainingResult, seconds: float) -> JobRecord:
        main = [row for row in result.history if row.phase == "all"]
        best = main[result.best_epoch]
        metric = best.metrics.get(self.rule.metric)
        point = GridPointRecord(
            job=job.name,
            fold=job.fold,
            values=dict(job.point),
            state="done",
            val_metric=_number(metric),
            val_loss=_number(best.metrics.get("loss")),
            best_epoch=result.best_epoch + 1,
            num_epochs=len(main),
            stopped_early=result.stopped_early,
            seconds=seconds,
        )
        history = epoch_rows(job, result.history, metric=self.rule.metric, best_epoch=result.best_epoch)
        return JobRecord(key=key, point=point, history=history, resumed=result.resumed)

    def _keep(self, job: Job, record: JobRecord, classifier: Classifier) -> JobOutcome:
        state = {name: value.detach().to("cpu").contiguous().clone() for name, value in classifier.state_dict().items()}
        if self.run is None:
            return JobOutcome(job, record, load=lambda: state)
        folder = self._folder(job)
        path = self.run.write(f"{folder}/weights.safetensors", safetensors.torch.save(state))
        self.run.write_record(f"{folder}/result.json", record)
        return JobOutcome(job, record, load=lambda: read_weights(path))

    def _read_back(self, job: Job, key: str) -> JobOutcome | None:
        if self.run is None:
            return None
        folder = self._folder(job)
        record, weights = self.run.read_record(f"{folder}/result.json", JobRecord), self.run.path / folder
        path = weights / "weights.safetensors"
        if record is None or record.key != key or not path.is_file():
            return None
        return JobOutcome(job, record, load=lambda: read_weights(path), read_back=True)

    def _folder(self, job: Job) -> str:
        return f"jobs/{portable_name(job.name)}"

    def _key(self, job: Job, data: FoldData) -> str:
        plugins = [plugin.spelling for plugin in self.plugins.describe()]
        decisive = {**self.facts, "data": data.fingerprint, "plugins": plugins, "rule": repr(self.rule)}
        decisive |= {"sampler": self.plugins.sampler, "flip": self.plugins.augmentation.flip}
        decisive |= {"settings": repr(_without_machine(replace(self.settings, **job.point)))}
        return hashlib.sha256(json.dumps(decisive, sort_keys=True, default=str).encode()).hexdigest()[:20]


def epoch_rows(job: Job, history: Sequence[TrainedEpoch], *, metric: str, best_epoch: int) -> list[EpochRow]:
    """What the trainer says about epochs, as records; epochs count from 1, those of the head alone first."""
    num_head = sum(row.phase == "head" for row in history)
    return [
        EpochRow(
            job=job.name,
            epoch=number,
            stage=row.phase,
            learning_rate=row.learning_rate,
            train_loss=_number(row.terms.get("loss")),
            terms={name: value for name, value in row.terms.items() if "/" in name},
            val_loss=_number(row.metrics.get("loss")),
            val_metric=_number(row.metrics.get(metric)),
            val_cka=_number(row.metrics.get("cka")),
            val_cka_debiased=_number(row.metrics.get("cka_debiased")),
            metric_reason=None if _number(row.metrics.get(metric)) is not None else _why_none(row.metrics),
            is_best=row.phase == "all" and number - num_head - 1 == best_epoch,
            seconds=row.seconds,
        )
        for number, row in enumerate(history, start=1)
    ]


def read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors of a safetensors file.

    Raises:
        DataError: The file is gone or damaged.
    """
    try:
        return safetensors.torch.load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"Cannot read the weights {path}: {error}. Use --overwrite to train again.") from error


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else float(value)


def _why_none(metrics: Mapping[str, float]) -> str:
    return "not defined on the validation rows" if metrics else "there are no validation rows"


def _without_machine(settings: TrainerSettings) -> TrainerSettings:
    """Where a run computes and how often it saves is not meant to change a number."""
    return replace(settings, device="cpu", num_processes=1, checkpoint_every_steps=None)
