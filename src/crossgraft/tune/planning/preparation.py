"""Everything before the plan: network, choices, contradictions, and which rows decide what."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from crossgraft.choice import spell
from crossgraft.compute import available_cores
from crossgraft.data.checks import check_rows, check_splits
from crossgraft.edit.words import edits_and_advice
from crossgraft.errors import MissingError
from crossgraft.geometry.batch_norm import batch_norms_of
from crossgraft.models import Backbone, ModelSpec
from crossgraft.models.adapted import base_model
from crossgraft.models.adapters.peft_format import PeftFiles
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.models.memory_format import is_convolutional
from crossgraft.options._option import configuration, given
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tasks import MultiClassTask, Task
from crossgraft.tune.engine.gradient_norms import trained_blocks
from crossgraft.tune.engine.selection_rule import Keep, SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings, schedule_of
from crossgraft.tune.engine.step import training_batch_norms
from crossgraft.tune.measuring.selection_metrics import choose_rule
from crossgraft.tune.measuring.thresholds import parse_threshold_rule
from crossgraft.tune.options import TuneOptions
from crossgraft.tune.parts import FoldRows, TuningRows
from crossgraft.tune.planning.batch_norm import BatchNorm, choose_batch_norm, for_few_steps, selection_with
from crossgraft.tune.planning.choices import (
    GridPoint,
    Plugins,
    choose_plugins,
    point_name,
    read_grid,
    trainer_settings,
    warmup_epochs,
)
from crossgraft.tune.planning.contradictions import TrainingSituation, refuse_contradictions
from crossgraft.tune.planning.domain_rules import TrainingDomains, in_whole_shares, training_domains
from crossgraft.tune.planning.fold_networks import load_start, model_of, open_adapter, put_first_adapters_in, typed_choice
from crossgraft.tune.planning.leave_out import left_out_in_words
from crossgraft.tune.planning.rows import FoldData, make_fold_data
from crossgraft.tune.planning.step_cost import steps_per_epoch
from crossgraft.tune.protocols import Selection

_PLUGIN_OPTIONS = ("method", "regularizer", "batch_transform", "augmentation", "loss", "objective", "feature_transform")


@dataclass(frozen=True, eq=False)
class Request:
    """Options of ``fine_tune`` and what their names stand for.

    Attributes:
        options: Options as given.
        spec: Spec of the model.
        points: Points of the grid.
        adapter: Files of ``--adapter``; None without.
    """

    options: TuneOptions
    spec: ModelSpec
    points: list[GridPoint]
    adapter: PeftFiles | None = None

    @classmethod
    def of(cls, options: TuneOptions) -> Request:
        """Look every name up, that of the model last.

        Raises:
            UnknownNameError: A name is not known.
            UsageError: An option has no meaning.
            DataError: The adapter is damaged.
        """
        points, adapter = read_names(options)
        return cls(options, model_of(options), points, adapter)

    def with_options(self, options: TuneOptions) -> Request:
        """The same model with other options."""
        return replace(self, options=options, points=read_grid(options.grid))

    def typed(self) -> dict[str, Any]:
        """The configuration as a command line gives it."""
        adapter = None if self.adapter is None else self.adapter.fingerprint  # the folder may be moved
        return as_typed(configuration(self.options, TuneOptions)) | {"adapter": adapter}

    def resolved(self) -> dict[str, Any]:
        """What options were resolved to."""
        plugins = choose_plugins(self.options, MultiClassTask())
        return {
            "model": self.spec.describe(),
            "method": spell(plugins.method),
            "regularizer": [spell(each) for each in plugins.regularizers],
            "batch_transform": [spell(each) for each in plugins.batch_transforms],
            "grid": [point_name(point) for point in self.points],
            **({} if plugins.objective.is_plain_mean else {"objective": spell(plugins.objective)}),
            **({"feature_transform": [spell(each) for each in chosen]} if (chosen := plugins.feature_transforms) else {}),
        }


def read_names(options: TuneOptions) -> tuple[list[GridPoint], PeftFiles | None]:
    """Points of the grid and files of ``--adapter``, with the names of all plug-ins looked up. Raises as ``Request.of``."""
    adapter = open_adapter(options.adapter, options.method)
    points = read_grid(options.grid)
    refuse_unknown_names(options)
    return points, adapter


def refuse_unknown_names(options: TuneOptions) -> None:
    """Raise for a misspelled plug-in, an option of one, or a threshold rule."""
    choose_plugins(options, MultiClassTask())
    schedule_of(options.schedule)
    parse_threshold_rule(options.threshold_rule or "youden")


def as_typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ``fine_tune`` as a command line gives them: objects and mappings become their text."""
    typed = dict(values)
    typed["sampler"] = typed["sampler"] or "shuffle"  # as runs have always named it that left it open
    for name in _PLUGIN_OPTIONS:
        if name not in typed:
            continue
        value = typed[name]
        several = isinstance(value, Sequence) and not isinstance(value, str)
        typed[name] = tuple(typed_choice(each) for each in value) if several else typed_choice(value)
    if isinstance(typed["grid"], Mapping):
        typed["grid"] = [f"{name}={','.join(f'{v:g}' for v in values)}" for name, values in typed["grid"].items()]
    if isinstance(typed["model"], ModelSpec):
        typed["model"] = typed["model"].typed
    return typed


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
        batch_norm: What BatchNorm normalises with.
        rule: Rule that selects epoch and grid point.
        stop_rule: Whose metric the patience looks at; None: that of ``rule``.
        keep: Similarity that trainings are to end at.
        num_threads: Number of threads that read images.
        notes: What the plan says about the start.
        domains: Domains of the training images of each fold; empty where nobody said.
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
    batch_norm: BatchNorm
    rule: SelectionRule
    stop_rule: SelectionRule | None
    keep: Keep | None
    num_threads: int
    notes: list[str]
    domains: tuple[TrainingDomains, ...] = ()

    @property
    def options(self) -> TuneOptions:
        """Options of ``fine_tune``."""
        return self.request.options

    @property
    def compares_adapted(self) -> bool:
        """Whether features are also compared with the start under BatchNorm statistics of the training images."""
        return self.moves_features and bool(self.batch_norm.num_layers)

    @property
    def moves_features(self) -> bool:
        """Whether fine-tuned features can differ from those of the network as it came."""
        return not self.plugins.method.features_are_fixed or self.batch_norm.mode == "adapt"

    def situation(self, point: GridPoint | None = None) -> TrainingSituation:
        """What contradictions are looked for in, at one point of the grid."""
        points = self.request.points
        trained = training_batch_norms(self.classifier, self.selection)
        keeping = set(batch_norms_of(self.classifier))
        return TrainingSituation(
            plugins=self.plugins,
            settings=settings_at(self, point or {}),
            task=self.task,
            num_train=len(self.rows.parts[0].train),
            num_classes=len(self.rows.dataset.class_names),
            has_val=self.rows.has_val,
            device=torch.device(self.settings.device).type,
            num_jobs=len(points) * len(self.rows.parts),
            num_points=len(points),
            batch_norm=self.batch_norm.mode,
            trained_batch_norms=tuple(trained),
            moved_batch_norms=tuple(name for name in trained if name in keeping),
            keep=self.keep,
            fewest_val=min(len(of_fold.val) for of_fold in self.rows.parts),
            given=given(self.options),
            grid_settings=frozenset(points[0]),
            num_trained_blocks=len(trained_blocks(self.classifier, self.selection)),
            is_convolutional=is_convolutional(self.classifier),
            domains=self.domains,
        )

    def for_parts(self, parts: FoldRows) -> Preparation:
        """What the trainings of one fold start from.

        Folds share settings, and the metric that picks the model. Where every domain is left out in turn, images of one domain
        would decide these for the training that never sees it; so each training chooses by its own, as if it were alone.
        """
        if not self.rows.has_several_models or parts.domain is None:
            return self
        place = next(place for place, each in enumerate(self.rows.parts) if each.domain == parts.domain)
        options, domains = self.options, self.domains[place : place + 1]
        settings = trainer_settings(
            options, self.plugins, num_train=len(parts.train), num_parameters=self.backbone.num_parameters
        )
        val, num_classes = [self.rows.dataset.targets[parts.val]], len(self.rows.dataset.class_names)
        stop_by = options.stop_by
        return replace(
            self,
            rows=replace(self.rows, parts=(parts,)),
            settings=in_whole_shares(settings, self.plugins, domains, is_asked=options.batch_size is not None),
            domains=domains,
            rule=choose_rule(options.select_by, val, num_classes),
            stop_rule=None if stop_by is None else choose_rule(stop_by, val, num_classes, flag="--stop-by"),
        )

    def new_classifier(self) -> Classifier:
        """A copy of the start."""
        return copy.deepcopy(self.classifier)

    def pretrained(self) -> Classifier | None:
        """The network with its pretrained weights; None where a method starts without them and they are not here."""
        if not self.plugins.method.starts_from_scratch:
            return base_model(self.classifier) if self.request.adapter is not None else self.new_classifier()
        try:
            backbone = load_start(self.request.spec, self.options, scratch=False, reporter=Reporter(quiet=True))
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
            start=self.new_classifier,
            pretrained=self.pretrained,
            adapts=self.batch_norm.mode == "adapt",
            domains=self.rows.domains,
        )


def prepare(
    rows: TuningRows, request: Request, *, run: RunDirectory | None, reporter: Reporter, checks: list[CheckRecord] | None = None
) -> Preparation:
    """Load the model, choose what was left open, and refuse contradictions.

    ``run`` records data, weights and machine; ``checks`` are those of these rows, if they were made before.
    """
    options, dataset, train = request.options, rows.dataset, rows.parts[0].train
    if run is not None:
        run.describe_data(dataset.fingerprint)
    if checks is None:
        checks = checks_of_rows(rows, strict=options.strict, reporter=reporter)
    task = dataset.task
    plugins = choose_plugins(options, task)
    backbone = load_start(request.spec, options, scratch=plugins.method.starts_from_scratch, reporter=reporter)
    if run is not None:
        run.describe_weights(reporter, {backbone.name: backbone.weights_fingerprint})
    classifier = make_classifier(backbone, task.num_outputs(len(dataset.class_names)), seed=options.seed)
    notes = put_first_adapters_in(classifier, plugins.method, request.adapter, seed=options.seed)
    settings = trainer_settings(options, plugins, num_train=len(train), num_parameters=backbone.num_parameters)
    domains = training_domains(rows)
    settings = in_whole_shares(settings, plugins, domains, is_asked=options.batch_size is not None)
    selection = plugins.method.select(classifier)
    batch_norm, about_norms = choose_batch_norm(options.batch_norm, plugins, classifier, selection)
    val_targets = [dataset.targets[of_fold.val] for of_fold in rows.parts]
    prepared = Preparation(
        rows=rows,
        checks=checks,
        task=task,
        request=request,
        backbone=backbone,
        classifier=classifier,
        plugins=plugins,
        settings=settings,
        selection=selection_with(batch_norm, classifier, selection),
        batch_norm=batch_norm,
        rule=choose_rule(options.select_by, val_targets, len(dataset.class_names)),
        stop_rule=None
        if options.stop_by is None
        else choose_rule(options.stop_by, val_targets, len(dataset.class_names), flag="--stop-by"),
        keep=None if options.keep is None else Keep.of(options.keep, adapted=batch_norm.mode == "adapt"),
        num_threads=options.workers or available_cores(),
        notes=[
            *([] if rows.edits is None else [edits_and_advice(rows.edits)]),
            *([] if rows.left_out is None else left_out_in_words(rows)),
            *notes,
            *about_norms,
            *batch_norm.notes(len(train)),
        ],
        domains=domains,
    )
    for point in request.points:  # what has no meaning comes to light before the first training
        refuse_contradictions(prepared.situation(point))
    if run is not None:
        processes = settings.num_processes
        run.describe_machine(reporter, threads=prepared.num_threads, device=settings.device, processes=processes)
    return prepared


def settings_at(prepared: Preparation, point: GridPoint) -> TrainerSettings:
    """Settings of a point of the grid; what nobody asked for follows its length."""
    options = prepared.request.options
    follows = "epochs" in point and options.warmup_epochs is None
    warmup = {"warmup_epochs": warmup_epochs(int(point["epochs"]))} if follows else {}
    settings = replace(prepared.settings, **point, **warmup)
    is_asked = options.batch_size is not None or "batch_size" in point
    settings = in_whole_shares(settings, prepared.plugins, prepared.domains, is_asked=is_asked)
    if not prepared.batch_norm.is_held or options.learning_rate is not None or "learning_rate" in point:
        return settings
    num_train = len(prepared.rows.parts[0].train)
    return for_few_steps(settings, settings.epochs * steps_per_epoch(num_train, settings.batch_size))


def checks_of_rows(rows: TuningRows, *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    """Findings about the training rows alone, and about images that are in two parts: as they came, since edits hide copies."""
    dataset = rows.as_they_came
    if rows.has_several_models:
        return check_rows(replace(dataset, splits=None), strict=strict, reporter=reporter)
    train = replace(dataset.take(rows.parts[0].train), splits=None)
    checks = check_rows(train, strict=strict, reporter=reporter, part="training images")
    return [*check_splits(dataset, strict=strict, reporter=reporter), *checks]
