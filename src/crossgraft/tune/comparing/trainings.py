"""Train every variant with every seed, each in a run directory of its own; what is done is read back."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int

from crossgraft.errors import CrossgraftError, DataError, RunDirectoryError, StorageError
from crossgraft.options import TuneOptions, configuration
from crossgraft.records import (
    ComparedTrainingRecord,
    ComparisonPlanRecord,
    PlanRecord,
    RunRecord,
    TuningRecord,
)
from crossgraft.runs import PAGE_FILE, THUMBNAILS_FILE, Publish, RunDirectory
from crossgraft.runs.command_line import display_value
from crossgraft.runs.run_directory import open_run
from crossgraft.tune.comparing.study import TRAININGS_FOLDER, Study
from crossgraft.tune.comparing.variants import Variant
from crossgraft.tune.planning.preparation import PLAN_FILE
from crossgraft.tune.planning.request import as_typed
from crossgraft.tune.result_rows import keep_known_result
from crossgraft.tune.tracking import Tracker
from crossgraft.tune.trainings import train_and_evaluate
from crossgraft.words.csv_cells import csv_rows
from crossgraft.words.metric_words import overall

Answers = Int[np.ndarray, " num_test"] | Float[np.ndarray, "num_test num_classes"]
"""What a model says about each test image: a class, or the probability of each label."""


@dataclass(frozen=True, eq=False)
class DoneTraining:
    """One variant with one seed, trained now or earlier.

    Attributes:
        variant: Which.
        seed: Which.
        row: How it went.
        record: Its own record; None where it failed.
        folder: Its run directory.
    """

    variant: Variant
    seed: int
    row: ComparedTrainingRecord
    record: TuningRecord | None
    folder: Path

    def answers(self, class_names: list[str], *, metric: str) -> Answers:
        """Of the test images in the order of the data: classes for balanced accuracy, probabilities for an AUC.

        Raises:
            DataError: ``predictions.csv`` is damaged.
        """
        path = self.folder / "predictions.csv"
        try:
            _, rows = csv_rows(path.read_bytes().decode("utf-8"))
            if metric == "auc":
                return np.array([[float(row[f"probability {name}"]) for name in class_names] for row in rows])
            places = {name: place for place, name in enumerate(class_names)}
            return np.array([places[row["decision"]] for row in rows], dtype=np.int64)
        except (OSError, KeyError, ValueError, csv.Error) as error:
            raise DataError(f"{path} is damaged ({error}). Remove that folder to train it again.") from error


def train_all(
    study: Study, plans: ComparisonPlanRecord, run: RunDirectory, tracking: Tracker, publish: Publish
) -> list[DoneTraining]:
    """Every variant with the first seed, then with the next: a comparison that is stopped is fair as far as it came.

    Raises:
        DataError: None of them ended with a model.
    """
    if not run.resumed:
        shutil.rmtree(run.path / TRAININGS_FOLDER, ignore_errors=True)  # of a run that --overwrite has replaced
    plan_of = {each.variant: each.plan for each in plans.variants}
    done: list[DoneTraining] = []
    for seed in study.seeds:
        for variant in study.variants:
            place = f"{len(done) + 1} of {plans.num_trainings}"
            done.append(_train_or_report(study, variant, seed, plan_of[variant.name], run, tracking, publish, place))
    if not any(each.record is not None for each in done):
        raise DataError(f"None of {len(done)} trainings ended with a model. The first one: {done[0].row.reason}")
    return done


def _train_or_report(
    study: Study,
    variant: Variant,
    seed: int,
    plan: PlanRecord,
    run: RunDirectory,
    tracking: Tracker,
    publish: Publish,
    place: str,
) -> DoneTraining:
    """Train, or read back what an earlier attempt finished; what goes wrong becomes a reason in the row."""
    name = study.folder_of(variant, seed)
    folder, reporter = run.path / name, study.reporter
    record = read_finished(folder)
    if record is not None and _has_its_page(folder, study):
        reporter.say(f"{variant.name} with seed {seed} was trained before ({place}).")
        options = study.options_of(variant, seed)
        if options.store:  # an earlier attempt may have found no place for it
            keep_known_result(record, study.request.spec, study.rows, options, reporter)
        return DoneTraining(variant, seed, _row(variant, seed, record, name), record, folder)
    reporter.say(f"Training {variant.name} with seed {seed} ({place}).")
    try:
        record = _train(study, variant, seed, plan, folder, run.record.command_line, tracking, publish)
    except (StorageError, RunDirectoryError):
        raise  # the disk is full, or another process is at work: no fault of the variant
    except (CrossgraftError, torch.OutOfMemoryError, RuntimeError) as error:
        # RuntimeError is what torch raises of a network that can not take a batch.
        reason = " ".join(str(error).split()) or type(error).__name__
        reporter.warn(f"{variant.name} with seed {seed} failed and is left out: {reason}")
        row = ComparedTrainingRecord(variant=variant.name, seed=seed, state="failed", reason=reason, seconds=0.0)
        return DoneTraining(variant, seed, row, None, folder)
    return DoneTraining(variant, seed, _row(variant, seed, record, name), record, folder)


def _train(
    study: Study,
    variant: Variant,
    seed: int,
    plan: PlanRecord,
    folder: Path,
    command_line: str,
    tracking: Tracker,
    publish: Publish,
) -> TuningRecord:
    typed = as_typed(configuration(study.options_of(variant, seed), TuneOptions))
    config: Mapping[str, object] = {"variant": variant.name, "data": study.rows.dataset.name, **typed}
    with open_run(
        folder,
        command="tune",
        command_line=command_line,  # typed alone, another seed would draw another split
        config={name: display_value(value) for name, value in config.items() if name != "seed"},
        seed=seed,
    ) as own:
        if own.read_record(PLAN_FILE, PlanRecord) is None:
            own.write_record(PLAN_FILE, plan)
        prepared = study.prepare(variant, seed, own, study.reporter)
        return train_and_evaluate(prepared, run=own, tracking=tracking, publish=publish, reporter=study.reporter).record


def read_finished(folder: Path) -> TuningRecord | None:
    """The record of a training that came to its end; None if it did not, or was written by another version."""
    try:
        run = RunRecord.model_validate_json((folder / "run.json").read_bytes())
        record = TuningRecord.model_validate_json((folder / "report.json").read_bytes())
    except (OSError, ValueError):
        return None
    return record if run.state == "done" and (folder / "predictions.csv").is_file() else None


def _has_its_page(folder: Path, study: Study) -> bool:
    """Without, the training is gone through again, which trains nothing twice."""
    needed = [PAGE_FILE] if study.request.options.no_images else [PAGE_FILE, THUMBNAILS_FILE]
    return all((folder / name).is_file() for name in needed)


def _row(variant: Variant, seed: int, record: TuningRecord, folder: str) -> ComparedTrainingRecord:
    picked = next((point for point in record.grid if point.picked), None)
    return ComparedTrainingRecord(
        variant=variant.name,
        seed=seed,
        state="done",
        folder=folder,
        metrics=[row for row in overall(record.metrics) if row.split == "test"],
        similarity=record.similarity,
        # A training that was stopped and went on knows the seconds of all its epochs, but those of its last attempt only.
        seconds=max(record.seconds, sum(row.seconds for row in record.history)),
        num_epochs=None if picked is None else picked.num_epochs,
        best_epoch=None if picked is None else picked.best_epoch,
        picked={} if picked is None else picked.values,
    )
