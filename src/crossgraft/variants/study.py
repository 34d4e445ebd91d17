"""What all trainings of a comparison share: rows, model, arguments; and what each of them changes."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from crossgraft.compute import available_cores
from crossgraft.errors import DataError, UsageError
from crossgraft.interpolate.interpolation import ALPHAS
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import overall
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.options._option import configuration
from crossgraft.progress import Piece, Reporter, TypicalClock
from crossgraft.records.base import CheckRecord, RunRecord
from crossgraft.running.command_line import display_value, portable_names
from crossgraft.running.jobs import Job, Outcome, Work, results_of, run_jobs
from crossgraft.running.run_directory import RunDirectory, open_run
from crossgraft.running.verb import PAGE, PAGE_FILE, THUMBNAILS_FILE
from crossgraft.tune.engine.step import training_batch_norms
from crossgraft.tune.forecast import NETWORKS, cost_of_measuring, count_looks, training_pieces
from crossgraft.tune.measuring.evaluation import UNSEEN_DOMAINS
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.planning.fold_networks import load_start
from crossgraft.tune.planning.plan import PLAN_FILE, Plan, make_plan, settings_table
from crossgraft.tune.planning.preparation import Preparation, Request, as_typed, prepare
from crossgraft.tune.record import PlanRecord, TuningRecord
from crossgraft.tune.result import keep_known_result
from crossgraft.tune.tracking import Tracker
from crossgraft.tune.trainings import train_and_evaluate
from crossgraft.variants.record import ComparedPlan, ComparedTrainingRecord, ComparisonPlanRecord
from crossgraft.variants.variant import Variant, left_out, without_meaning
from crossgraft.words.formatting import count, counted, duration
from crossgraft.words.visible import csv_rows, visible

PLANS_FILE = "plan.json"
"""In the run directory; a resumed comparison keeps the plans that it was started with."""
TRAININGS_FOLDER = "trainings"


@dataclass(frozen=True, eq=False)
class VariantStudy:
    """What all trainings share.

    Attributes:
        rows: Opened once, with one split for all.
        checks: What was found in them.
        request: What was asked for in all of them.
        variants: What is compared.
        seeds: Random seeds of each variant.
        reporter: Reporter of progress.
    """

    rows: TuningRows
    checks: list[CheckRecord]
    request: Request
    variants: Sequence[Variant]
    seeds: Sequence[int]
    reporter: Reporter

    @property
    def num_threads(self) -> int:
        """For images and arithmetic."""
        return self.request.options.workers or available_cores()

    @property
    def has_curves(self) -> bool:
        """Whether networks between the pretrained one and a variant are measured: one network, not one for each domain."""
        return any(variant.is_full for variant in self.variants) and not self.rows.has_several_models

    def options_of(self, variant: Variant, seed: int) -> TuneOptions:
        """Options of one training; only the first seed is a known result of its protocol."""
        options = self.request.options
        store = options.store and seed == self.seeds[0]
        return variant_options(options, variant, seed=seed, store=store)

    def prepare(self, variant: Variant, seed: int, run: RunDirectory | None) -> tuple[Preparation, Plan]:
        """Everything before the first step of one training."""
        request = self.request.with_options(self.options_of(variant, seed))
        prepared = prepare(self.rows, request, run=run, reporter=self.reporter, checks=self.checks)
        return prepared, make_plan(prepared, run=run, reporter=self.reporter)

    def pretrained(self, seed: int, num_outputs: int) -> Classifier:
        """The network before any training, with a new head."""
        options = replace(self.request.options, seed=seed)
        backbone = load_start(self.request.spec, options, scratch=False, reporter=Reporter(quiet=True))
        return make_classifier(backbone, num_outputs, seed=seed)

    def folder_of(self, variant: Variant, seed: int) -> str:
        """Where one training lies in the run directory; two variants never share it."""
        names = portable_names(each.name for each in self.variants)
        place = next(number for number, each in enumerate(self.variants) if each is variant)
        return f"{TRAININGS_FOLDER}/{names[place]}-{seed}"


def variant_options(options: TuneOptions, variant: Variant, **more: object) -> TuneOptions:
    """The options of all variants that mean something to one, with its own settings."""
    return replace(options, **cast("dict[str, Any]", {**without_meaning(options, variant), **variant.settings, **more}))


def plan_all(study: VariantStudy, run: RunDirectory | None) -> ComparisonPlanRecord:
    """Plan every variant, so that what contradicts itself comes to light before the first training.

    Raises:
        UsageError: A variant contradicts itself; the message names it.
    """
    kept = None if run is None else run.read_record(PLANS_FILE, ComparisonPlanRecord)
    if kept is not None:
        return kept
    notes = left_out(study.request.options, study.variants)
    for note in notes:
        study.reporter.say(note)
    plans = [ComparedPlan(variant=each.name, form=each.form, plan=_plan_one(study, each, notes)) for each in study.variants]
    times = [each.plan.expected_seconds for each in plans]
    known = [time for time in times if time is not None]
    record = ComparisonPlanRecord(
        variants=plans,
        seeds=list(study.seeds),
        num_trainings=len(plans) * len(study.seeds),
        expected_seconds=sum(known) * len(study.seeds) if len(known) == len(times) else None,
    )
    if run is not None:
        run.write_record(PLANS_FILE, record)
    return record


def foresee(study: VariantStudy, plans: ComparisonPlanRecord, run: RunDirectory) -> None:
    """Say how long all trainings and curves will take; what an earlier attempt has finished counts nothing."""
    if not study.reporter.wants_forecast or plans.expected_seconds is None:
        return
    pieces, at_most = _pieces(study, plans)
    done = {
        training_name(variant, seed)
        for seed in study.seeds
        for variant in study.variants
        if run.resumed and (run.path / study.folder_of(variant, seed) / PAGE_FILE).is_file()
    }
    words = f"{counted(len(study.variants), 'variant')} × {counted(len(study.seeds), 'seed')}"
    if study.has_curves:
        words += f", and {counted(len(ALPHAS) * len(study.seeds), 'network')} between pretrained and full"
    study.reporter.expect([piece for piece in pieces if piece.place[0] not in done], words, at_most=at_most)


def seconds_beside_training(study: VariantStudy, plans: ComparisonPlanRecord) -> float:
    """What a comparison does beside its trainings, the pages of which are its own: looks at images, metrics, curves."""
    slowdown = TypicalClock().slowdown
    everything = sum(piece.slowed_down(slowdown).seconds for piece in _pieces(study, plans)[0])
    return max(everything - (plans.expected_seconds or 0.0), 0.0)


def _pieces(study: VariantStudy, plans: ComparisonPlanRecord) -> tuple[list[Piece], bool]:
    """All trainings with what is measured of them and their pages, then the curves; and whether trainings may stop early."""
    quiet = replace(study, reporter=Reporter(quiet=True))
    prepared, _ = quiet.prepare(study.variants[0], study.seeds[0], None)
    parts, has_norms = study.rows.parts[0], bool(prepared.batch_norm.num_layers)
    estimates = bool(training_batch_norms(prepared.classifier, prepared.selection))
    looks = count_looks(parts, ALPHAS, estimates=estimates, adapts=has_norms) if study.has_curves else 0
    cost = cost_of_measuring(prepared, further_looks=looks)
    of_variant = {each.variant: each.plan for each in plans.variants}
    pieces: list[Piece] = []
    for seed in study.seeds:
        for variant in study.variants:
            options = study.options_of(variant, seed)
            adapts = has_norms and (not variant.method.features_are_fixed or options.batch_norm == "adapt")
            points = study.request.with_options(options).points
            own = [*training_pieces(points, study.rows, of_variant[variant.name], cost, adapts=adapts), PAGE]
            pieces += [piece.under(training_name(variant, seed)) for piece in own]
    if study.has_curves:
        seconds = cost.look * looks + cost.metrics * len(ALPHAS)
        pieces += [Piece((curve_name(seed), NETWORKS), seconds, NETWORKS) for seed in study.seeds]
    return pieces, prepared.settings.patience is not None


def training_name(variant: Variant, seed: int) -> str:
    """One training, as a part of the work."""
    return f"{variant.name} with seed {seed}"


def curve_name(seed: int) -> str:
    """The networks between pretrained and full, as a part of the work."""
    return f"networks of seed {seed}"


def _plan_one(study: VariantStudy, variant: Variant, notes: Sequence[str]) -> PlanRecord:
    """The plan of one variant, with ``notes`` about all of them."""
    study.reporter.say(f"Planning {variant.name}.")
    try:
        record = study.prepare(variant, study.seeds[0], None)[1].record
        return record.model_copy(update={"notes": [*notes, *record.notes]})
    except UsageError as error:
        raise UsageError(f"The variant {variant.name}: {error}") from error


def _time_of_all(record: ComparisonPlanRecord) -> str:
    if record.expected_seconds is None:
        return "not measured"
    if record.seconds_beside is None:
        return f"about {duration(record.expected_seconds)} at most"
    whole = duration(record.expected_seconds + record.seconds_beside)
    return f"about {whole} at most; training takes {duration(record.expected_seconds)} of it"


def plans_in_words(record: ComparisonPlanRecord) -> str:
    """What ``--plan`` prints: one line per variant, the time of all, what all share, then the rest of every plan."""
    width = max(len(each.named) for each in record.variants)
    seeds = counted(len(record.seeds), "seed")
    lines = [f"{counted(record.num_trainings, 'training')}: {counted(len(record.variants), 'variant')} × {seeds}."]
    for each in record.variants:
        seconds = each.plan.expected_seconds
        time = "time not measured" if seconds is None else f"about {duration(seconds)} at most"
        lines.append(
            f"  {each.named:<{width}}  {count(each.plan.num_trained):>13} trained, {count(each.plan.num_steps)} steps, {time}"
        )
    lines += [f"Time of all of them, on this machine: {_time_of_all(record)}.", ""]
    settings, notes = _shared([each.plan for each in record.variants])
    lines += ["The same in all of them, settings that were chosen for you too:", *settings_table(settings)]
    lines += ["", *(f"Note: {note}" for note in notes)] if notes else []
    for each in record.variants:
        own = {
            "settings": {name: text for name, text in each.plan.settings.items() if name not in settings},
            "notes": [note for note in each.plan.notes if note not in notes],
        }
        summary = Plan(each.plan.model_copy(update=own)).summary()
        lines += ["", f"{each.named}:", *(f"  {line}" if line else "" for line in summary.splitlines())]
    return "\n".join(map(visible, lines))


def _shared(plans: Sequence[PlanRecord]) -> tuple[dict[str, str], list[str]]:
    """Settings and notes that are in every plan, in the order of the first."""
    first = plans[0]
    settings = {name: text for name, text in first.settings.items() if all(plan.settings.get(name) == text for plan in plans)}
    return settings, [note for note in first.notes if all(note in plan.notes for plan in plans)]


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

    study: VariantStudy
    plans: Mapping[str, PlanRecord]
    run: RunDirectory
    tracking: Tracker

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
            return train_and_evaluate(prepared, plan, run=own, tracking=self.tracking, reporter=study.reporter).record


def train_all(study: VariantStudy, plans: ComparisonPlanRecord, run: RunDirectory, tracking: Tracker) -> list[DoneTraining]:
    """Every variant with the first seed, then with the next: a comparison that is stopped is fair as far as it came.

    Raises:
        DataError: None of them ended with a model.
    """
    run.own(f"{TRAININGS_FOLDER}/")
    work = _Trainings(study, {each.variant: each.plan for each in plans.variants}, run, tracking)
    pairs = [(variant, seed) for seed in study.seeds for variant in study.variants]
    turns = [
        _Turn(variant, seed, study.folder_of(variant, seed), f"{number} of {len(pairs)}")
        for number, (variant, seed) in enumerate(pairs, start=1)
    ]
    jobs = [Job(training_name(turn.variant, turn.seed), turn) for turn in turns]
    outcomes = run_jobs(jobs, work, keep_going=True, told=partial(_tell, study=study))
    if not results_of(outcomes):
        raise DataError(f"None of {len(outcomes)} trainings ended with a model. The first one: {outcomes[0].reason}")
    whole = [_without_gaps(outcome) for outcome in outcomes]
    if not results_of(whole):
        raise DataError(f"None of {len(outcomes)} trainings ended with all its models. The first one: {whole[0].reason}")
    return [
        DoneTraining(turn.variant, turn.seed, _row(turn, outcome), outcome.result, run.path / turn.folder)
        for turn, outcome in zip(turns, whole, strict=True)
    ]


def _without_gaps(outcome: Outcome[_Turn, TuningRecord]) -> Outcome[_Turn, TuningRecord]:
    """As failed where a domain has no model: means over other domains are no means of these."""
    unseen = None if outcome.result is None else outcome.result.unseen_domains
    missing = [] if unseen is None else [each for each in unseen.domains if each.reason is not None]
    if not missing:
        return outcome
    return replace(outcome, result=None, reason=f"without {missing[0].domain}: {missing[0].reason}")


def _tell(outcome: Outcome[_Turn, TuningRecord], *, study: VariantStudy) -> None:
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


def _has_its_page(folder: Path, study: VariantStudy) -> bool:
    """Without, the training is gone through again, which trains nothing twice."""
    needed = [PAGE_FILE] if study.request.options.no_images else [PAGE_FILE, THUMBNAILS_FILE]
    return all((folder / name).is_file() for name in needed)


def _tested(record: TuningRecord) -> list[MetricRecord]:
    """Metrics of all test images; where every domain was left out, the primary one is the mean over domains."""
    if record.unseen_domains is None or not record.unseen_domains.is_each:
        return [row for row in overall(record.metrics) if row.split == "test"]
    headline = record.headline
    return [
        headline if headline is not None and row.metric == headline.metric else row
        for row in overall(record.metrics)
        if row.split == UNSEEN_DOMAINS
    ]


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
        metrics=_tested(record),
        similarity=record.similarity,
        # A training that was stopped and went on knows the seconds of all its epochs, but those of its last attempt only.
        seconds=max(record.seconds, sum(row.seconds for row in record.history)),
        num_epochs=None if picked is None else picked.num_epochs,
        best_epoch=None if picked is None else picked.best_epoch,
        picked={} if picked is None else picked.values,
    )
