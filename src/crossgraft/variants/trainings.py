"""Train every variant with every seed, each in a run directory of its own; what is done is read back."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from crossgraft.errors import DataError
from crossgraft.metrics.words import overall
from crossgraft.options._option import configuration
from crossgraft.records.runs import RunRecord
from crossgraft.running.command_line import display_value
from crossgraft.running.ending import PAGE_FILE, THUMBNAILS_FILE, Publish
from crossgraft.running.jobs import Job, Outcome, Work, results_of, run_jobs
from crossgraft.running.run_directory import RunDirectory, open_run
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.planning.plan import PLAN_FILE
from crossgraft.tune.planning.request import as_typed
from crossgraft.tune.record import PlanRecord, TuningRecord
from crossgraft.tune.result_rows import keep_known_result
from crossgraft.tune.tracking import Tracker
from crossgraft.tune.trainings import train_and_evaluate
from crossgraft.variants.record import ComparedTrainingRecord, ComparisonPlanRecord
from crossgraft.variants.study import TRAININGS_FOLDER, Study, training_name
from crossgraft.variants.variant import Variant
from crossgraft.words.csv_cells import csv_rows

Answers = Int[np.ndarray, " num_test"] | Float[np.ndarray, "num_test num_classes"]
"""What a model says about each test image: a class, or the probability of each label."""


@dataclass(frozen=True, eq=False)
class DoneTraining:
    """One variant with one seed, trained now or earlier.

    Attributes:
        variant: Variant that was trained.
        seed: Random seed of the training.
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
        """Answers for the test images in the order of the data: classes for balanced accuracy, probabilities for an AUC.

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


@dataclass(frozen=True)
class _Turn:
    """One variant with one seed; ``folder`` is relative, and ``position`` for messages (``2 of 6``)."""

    variant: Variant
    seed: int
    folder: str
    position: str


@dataclass(frozen=True, eq=False)
class _Trainings(Work[_Turn, TuningRecord]):
    """Each training is a run of its own, which also knows by itself whether it may go on."""

    study: Study
    plans: Mapping[str, PlanRecord]
    run: RunDirectory
    tracking: Tracker
    publish: Publish

    def around(self, job: Job[_Turn]) -> AbstractContextManager[object]:
        return self.study.reporter.part(job.name)

    def read_back(self, job: Job[_Turn]) -> TuningRecord | None:
        folder = self.run.path / job.spec.folder
        return read_finished(folder) if _has_its_page(folder, self.study) else None

    def do(self, job: Job[_Turn]) -> TuningRecord:
        study, variant, seed = self.study, job.spec.variant, job.spec.seed
        study.reporter.say(f"Training {job.name} ({job.spec.position}).")
        typed = as_typed(configuration(study.options_of(variant, seed), TuneOptions))
        config: Mapping[str, object] = {"variant": variant.name, "data": study.rows.dataset.name, **typed}
        with open_run(
            self.run.path / job.spec.folder,
            command="tune",
            command_line=self.run.record.command_line,  # typed alone, another seed would draw another split
            config={name: display_value(value) for name, value in config.items() if name != "seed"},
            seed=seed,
        ) as own:
            own.update(as_typed=self.run.record.as_typed)
            if own.read_record(PLAN_FILE, PlanRecord) is None:
                own.write_record(PLAN_FILE, self.plans[variant.name])
            prepared, plan = study.prepare(variant, seed, own)
            return train_and_evaluate(
                prepared, plan, run=own, tracking=self.tracking, publish=self.publish, reporter=study.reporter
            ).record


def train_all(
    study: Study, plans: ComparisonPlanRecord, run: RunDirectory, tracking: Tracker, publish: Publish
) -> list[DoneTraining]:
    """Every variant with the first seed, then with the next: a comparison that is stopped is fair as far as it came.

    Raises:
        DataError: None of them ended with a model.
    """
    run.own(f"{TRAININGS_FOLDER}/")
    work = _Trainings(study, {each.variant: each.plan for each in plans.variants}, run, tracking, publish)
    pairs = [(variant, seed) for seed in study.seeds for variant in study.variants]
    turns = [
        _Turn(variant, seed, study.folder_of(variant, seed), f"{number} of {len(pairs)}")
        for number, (variant, seed) in enumerate(pairs, start=1)
    ]
    jobs = [Job(training_name(turn.variant, turn.seed), turn) for turn in turns]
    outcomes = run_jobs(jobs, work, keep_going=True, told=partial(_tell, study=study))
    if not results_of(outcomes):
        raise DataError(f"None of {len(outcomes)} trainings ended with a model. The first one: {outcomes[0].reason}")
    return [
        DoneTraining(turn.variant, turn.seed, _row(turn, outcome), outcome.result, run.path / turn.folder)
        for turn, outcome in zip(turns, outcomes, strict=True)
    ]


def _tell(outcome: Outcome[_Turn, TuningRecord], *, study: Study) -> None:
    turn, reporter = outcome.job.spec, study.reporter
    if outcome.result is None:
        reporter.warn(f"{outcome.job.name} failed and is left out: {outcome.reason}")
    elif outcome.was_read_back:
        reporter.say(f"{outcome.job.name} was trained before ({turn.position}).")
        options = study.options_of(turn.variant, turn.seed)
        if options.store:  # an earlier attempt may have found no place for it
            keep_known_result(outcome.result, study.request.spec, study.rows, options, reporter)


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


def _row(turn: _Turn, outcome: Outcome[_Turn, TuningRecord]) -> ComparedTrainingRecord:
    record, variant, seed = outcome.result, turn.variant.name, turn.seed
    if record is None:
        return ComparedTrainingRecord(variant=variant, seed=seed, state="failed", reason=outcome.reason, seconds=0.0)
    picked = next((point for point in record.grid if point.picked), None)
    return ComparedTrainingRecord(
        variant=variant,
        seed=seed,
        state="done",
        folder=turn.folder,
        metrics=[row for row in overall(record.metrics) if row.split == "test"],
        similarity=record.similarity,
        # A training that was stopped and went on knows the seconds of all its epochs, but those of its last attempt only.
        seconds=max(record.seconds, sum(row.seconds for row in record.history)),
        num_epochs=None if picked is None else picked.num_epochs,
        best_epoch=None if picked is None else picked.best_epoch,
        picked={} if picked is None else picked.values,
    )
