"""Everything before the first step: rows, network, choices, contradictions, the plan."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from crossgraft.compute import available_cores
from crossgraft.data import DATA_OPTIONS, Dataset
from crossgraft.data.checks import check_rows, check_splits
from crossgraft.errors import MissingError
from crossgraft.models import Backbone
from crossgraft.models.adapted import base_model
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.options import TuneOptions, given
from crossgraft.progress import Reporter
from crossgraft.records import CheckRecord, PlanRecord
from crossgraft.runs import RunDirectory
from crossgraft.tasks import Task
from crossgraft.tune.engine.modes import training_batch_norms
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.measuring.selection_metrics import choose_rule
from crossgraft.tune.methods._method import Selection
from crossgraft.tune.parts import FoldRows, TuningRows
from crossgraft.tune.planning.choices import Plugins
from crossgraft.tune.planning.contradictions import notes_on, refuse_contradictions, warnings_on
from crossgraft.tune.planning.first_adapter import put_first_adapters_in
from crossgraft.tune.planning.fold_data import FoldData, make_fold_data
from crossgraft.tune.planning.grid import GridPoint
from crossgraft.tune.planning.plan import Plan
from crossgraft.tune.planning.request import Request, plugins_of
from crossgraft.tune.planning.rows import columns_of, open_rows
from crossgraft.tune.planning.situation import TrainingSituation
from crossgraft.tune.planning.starting_model import load_start
from crossgraft.tune.planning.timed_plan import make_timed_plan
from crossgraft.tune.planning.trainer_settings import trainer_settings

PLAN_FILE = "plan.json"
"""In a run directory; a resumed run keeps the plan that it was started with."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What the trainings start from.

    Attributes:
        rows: Data and parts.
        checks: Findings about the rows.
        task: Kind of the targets.
        request: Requested fine-tuning.
        backbone: Pretrained, or with random weights for a method that starts from them.
        classifier: The start of every training.
        plugins: Plug-ins in the slots.
        settings: Settings of the trainer, without the grid.
        selection: Selection of what is trained.
        rule: Rule that selects epoch and grid point.
        num_threads: Number of threads that read images.
        plan: Plan of all trainings.
    """

    rows: TuningRows
    checks: list[CheckRecord]
    task: Task
    request: Request
    backbone: Backbone
    classifier: Classifier
    plugins: Plugins
    settings: TrainerSettings
    selection: Selection
    rule: SelectionRule
    num_threads: int
    plan: Plan

    def new_classifier(self) -> Classifier:
        """A copy of the start."""
        return copy.deepcopy(self.classifier)

    def pretrained(self) -> Classifier | None:
        """The network with its pretrained weights; None where a method starts without them and they are not here."""
        if not self.plugins.method.starts_from_scratch:
            return base_model(self.classifier) if self.request.adapter is not None else self.new_classifier()
        try:
            backbone = load_start(self.request.spec, self.request.options, scratch=False, reporter=Reporter(quiet=True))
        except MissingError:
            return None
        return make_classifier(backbone, self.classifier.num_outputs, seed=self.settings.seed)

    def fold_data(self, parts: FoldRows) -> FoldData:
        """Images, targets and evaluation of one fold; features are compared with pretrained ones unless they never change."""
        return make_fold_data(
            self.rows.dataset,
            parts,
            self.classifier,
            self.plugins,
            self.settings,
            self.num_threads,
            pretrained=None if self.plugins.method.features_are_fixed else self.pretrained,
        )


def prepare(
    data: str | Path | Dataset, request: Request, *, run: RunDirectory | None, reporter: Reporter
) -> Preparation:
    """Open the rows, then ``prepare_rows``; ``data`` as in ``fine_tune``."""
    rows = open_rows_of(data, request.options, reporter)
    columns_of(rows.dataset, request.options.subgroups)  # a column that is not there comes to light before the plan
    return prepare_rows(rows, request, run=run, reporter=reporter)


def prepare_rows(
    rows: TuningRows,
    request: Request,
    *,
    run: RunDirectory | None,
    reporter: Reporter,
    checks: list[CheckRecord] | None = None,
) -> Preparation:
    """Load the model, choose what was left open, refuse contradictions, and make the plan.

    Args:
        rows: Open, each with its part.
        request: Requested fine-tuning.
        run: Run that records data and machine.
        reporter: Reporter of progress.
        checks: Checks of these rows, if they were made before.
    """
    options, points = request.options, request.points
    num_threads = options.workers or available_cores()
    dataset = rows.dataset
    if run is not None:
        run.describe_data(dataset.fingerprint)
    if checks is None:
        checks = checks_of_rows(rows, strict=options.strict, reporter=reporter)
    task = dataset.task
    plugins = plugins_of(options, task)
    backbone = load_start(request.spec, options, scratch=plugins.method.starts_from_scratch, reporter=reporter)
    classifier = make_classifier(backbone, task.num_outputs(len(dataset.class_names)), seed=options.seed)
    adapter_notes = put_first_adapters_in(classifier, plugins.method, request.adapter, seed=options.seed)
    parts = rows.parts[0]
    settings = trainer_settings(options, plugins, num_train=len(parts.train), num_parameters=backbone.num_parameters)
    selection = plugins.method.select(classifier)
    situation = _situation(rows, plugins, settings, points, classifier, selection, task, given(options))
    for point in points:  # what has no meaning comes to light before the first training
        refuse_contradictions(replace(situation, settings=replace(settings, **point)))
    val_targets = [dataset.targets[of_fold.val] for of_fold in rows.parts]
    rule = choose_rule(options.select_by, val_targets, len(dataset.class_names))
    if run is not None:
        run.describe_machine(reporter, threads=num_threads, device=settings.device, processes=settings.num_processes)
    plan = None if run is None else run.read_record(PLAN_FILE, PlanRecord)
    if plan is None:
        warnings = warnings_on(situation)
        for warning in warnings:
            reporter.warn(warning)
        notes = [
            *warnings,
            *notes_on(situation),
            *adapter_notes,
            *([] if dataset.groups is not None else [rows.leakage]),
        ]
        plan = make_timed_plan(rows, classifier, selection, situation, rule, points, notes, num_threads, reporter)
    if run is not None:
        run.write_record(PLAN_FILE, plan)
    return Preparation(
        rows=rows,
        checks=checks,
        task=task,
        request=request,
        backbone=backbone,
        classifier=classifier,
        plugins=plugins,
        settings=settings,
        selection=selection,
        rule=rule,
        num_threads=num_threads,
        plan=Plan(plan),
    )


def _situation(
    rows: TuningRows,
    plugins: Plugins,
    settings: TrainerSettings,
    points: list[GridPoint],
    classifier: Classifier,
    selection: Selection,
    task: Task,
    given_names: frozenset[str],
) -> TrainingSituation:
    """What contradictions are looked for in."""
    return TrainingSituation(
        plugins=plugins,
        settings=settings,
        task=task,
        num_train=len(rows.parts[0].train),
        num_classes=len(rows.dataset.class_names),
        has_val=rows.has_val,
        device=torch.device(settings.device).type,
        num_jobs=len(points) * len(rows.parts),
        num_points=len(points),
        trained_batch_norms=tuple(training_batch_norms(classifier, selection)),
        given=given_names,
        grid_settings=frozenset(points[0]),
    )


def open_rows_of(data: str | Path | Dataset, options: TuneOptions, reporter: Reporter) -> TuningRows:
    """Open the data and give every row its part; ``data`` as in ``fine_tune``."""
    reading = {name: getattr(options, name) for name in DATA_OPTIONS}
    return open_rows(data, val_fraction=options.val_fraction, reporter=reporter, **reading)


def checks_of_rows(rows: TuningRows, *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    """Findings about the training rows alone, and about images that are in two parts."""
    dataset = rows.dataset
    train = dataset if rows.num_folds is not None else dataset.take(rows.parts[0].train)
    found = check_rows(replace(train, splits=None), strict=strict, reporter=reporter)
    return found if rows.num_folds is not None else [*check_splits(dataset, strict=strict, reporter=reporter), *found]
