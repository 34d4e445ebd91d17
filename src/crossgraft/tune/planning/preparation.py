"""Everything before the first step: rows, network, choices, contradictions, the plan."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.compute import available_cores, limit_threads, resolve_device
from crossgraft.data import DATA_OPTIONS, Dataset
from crossgraft.data.checks import check_rows, check_splits
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.models import Backbone, ModelSpec, load_backbone, random_weights_control, read_zoo
from crossgraft.models.classifier import Classifier, make_classifier
from crossgraft.progress import Reporter
from crossgraft.records import CheckRecord, PlanRecord
from crossgraft.runs import RunDirectory
from crossgraft.tune.engine.modes import training_batch_norms
from crossgraft.tune.engine.selection_rule import SelectionRule
from crossgraft.tune.engine.settings import TrainerSettings
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.jobs import FoldData, make_feed
from crossgraft.tune.measuring.selection_metrics import SelectionMetrics, choose_rule
from crossgraft.tune.methods._method import Selection
from crossgraft.tune.planning.choices import Plugins, choose_plugins
from crossgraft.tune.planning.contradictions import Situation, notes_on, refuse_contradictions
from crossgraft.tune.planning.defaults import choose_settings
from crossgraft.tune.planning.grid import GridPoint
from crossgraft.tune.planning.parts import Parts, TuningRows
from crossgraft.tune.planning.plan import Plan, make_plan
from crossgraft.tune.planning.rows import open_rows
from crossgraft.tune.planning.step_cost import measure_step
from crossgraft.types import Task

PRECISIONS = {"32": "32-true", "64": "64-true", "bf16": "bf16-mixed", "16": "16-mixed"}
"""Short names of number types."""

PLAN_FILE = "plan.json"
"""In a run directory; a resumed run keeps the plan that it was started with."""

_OF_TRAINER = (
    "epochs", "batch_size", "learning_rate", "head_learning_rate", "weight_decay", "optimizer", "momentum",
    "warmup_epochs", "schedule", "layer_decay", "accumulate", "clip_norm", "patience", "head_first", "head_epochs",
    "head_patience", "seed",
)  # fmt: skip
"""Arguments that are settings of the trainer under the same name."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """What the trainings start from.

    Attributes:
        rows: Data and parts.
        checks: What was found in the rows.
        task: What the targets are.
        spec: Of the model, as it was named.
        backbone: Pretrained, or with random weights for a method that starts from them.
        classifier: The start of every training.
        plugins: In the slots.
        settings: Of the trainer, without the grid.
        selection: What is trained.
        rule: What picks epoch and point.
        points: Of the grid.
        num_threads: For images.
        plan: Of all trainings.
        call: Arguments of ``fine_tune``.
    """

    rows: TuningRows
    checks: list[CheckRecord]
    task: Task
    spec: ModelSpec
    backbone: Backbone
    classifier: Classifier
    plugins: Plugins
    settings: TrainerSettings
    selection: Selection
    rule: SelectionRule
    points: list[GridPoint]
    num_threads: int
    plan: Plan
    call: Mapping[str, Any]

    def new_classifier(self) -> Classifier:
        """A copy of the start."""
        return copy.deepcopy(self.classifier)

    def pretrained(self) -> Classifier:
        """The network with its pretrained weights, also for a method that starts without them."""
        if not self.plugins.method.starts_from_scratch:
            return self.new_classifier()
        backbone = _load(self.spec, self.call, scratch=False, reporter=Reporter(quiet=True))
        return make_classifier(backbone, self.classifier.num_outputs, seed=self.settings.seed)

    def fold_data(self, parts: Parts) -> FoldData:
        """Images, targets and evaluation of one fold."""
        return _fold_data(
            self.rows.dataset, parts, self.classifier, self.plugins, self.settings, self.task, self.num_threads
        )


def prepare(
    data: str | Path | Dataset,
    call: Mapping[str, Any],
    *,
    given: frozenset[str],
    points: list[GridPoint],
    spec: ModelSpec,
    run: RunDirectory | None,
    reporter: Reporter,
) -> Preparation:
    """Open the rows, then ``prepare_rows``; ``data`` and ``call`` as in ``fine_tune``."""
    rows = _open(data, call, reporter)
    return prepare_rows(rows, call, given=given, points=points, spec=spec, run=run, reporter=reporter)


def prepare_rows(
    rows: TuningRows,
    call: Mapping[str, Any],
    *,
    given: frozenset[str] = frozenset(),
    points: list[GridPoint],
    spec: ModelSpec,
    run: RunDirectory | None,
    reporter: Reporter,
) -> Preparation:
    """Load the model, choose what was left open, refuse contradictions, and make the plan.

    Args:
        rows: Open, each with its part.
        call: Arguments of ``fine_tune``.
        given: Names of those that are not at their defaults; some contradict others.
        points: Of the grid.
        spec: Of the model.
        run: Told about data and machine.
        reporter: Told what is going on.
    """
    num_threads = call["workers"] or available_cores()
    dataset = rows.dataset
    if run is not None:
        run.describe_data(dataset.fingerprint)
    checks = _check(rows, strict=call["strict"], reporter=reporter)
    task = task_of(dataset)
    plugins = plugins_of(call, task)
    backbone = _load(spec, call, scratch=plugins.method.starts_from_scratch, reporter=reporter)
    classifier = make_classifier(backbone, len(dataset.class_names), seed=call["seed"])
    parts = rows.parts[0]
    settings = _settings(call, plugins, num_train=len(parts.train), num_parameters=backbone.num_parameters)
    for point in points:
        replace(settings, **point)  # a value without a meaning comes to light before the first training
    selection = plugins.method.select(classifier)
    situation = Situation(
        plugins=plugins,
        settings=settings,
        task=task,
        num_train=len(parts.train),
        num_classes=len(dataset.class_names),
        has_val=rows.has_val,
        device=torch.device(settings.device).type,
        num_jobs=len(points) * len(rows.parts),
        num_points=len(points),
        trained_batch_norms=tuple(training_batch_norms(classifier, selection)),
        given=given,
        grid_settings=frozenset(points[0]),
    )
    refuse_contradictions(situation)
    num_classes, val_targets = len(dataset.class_names), dataset.targets[parts.val]
    rule = choose_rule(call["select_by"], val_targets, num_classes, has_val=rows.has_val)
    if run is not None:
        run.describe_machine(threads=num_threads, device=settings.device, processes=settings.num_processes)
    plan = None if run is None else run.read_record(PLAN_FILE, PlanRecord)
    if plan is None:
        notes = [*notes_on(situation), *([] if dataset.groups is not None else [rows.leakage])]
        plan = _make_plan(rows, classifier, selection, situation, rule, points, notes, num_threads, reporter)
    if run is not None:
        run.write_record(PLAN_FILE, plan)
    return Preparation(
        rows=rows,
        checks=checks,
        task=task,
        spec=spec,
        backbone=backbone,
        classifier=classifier,
        plugins=plugins,
        settings=settings,
        selection=selection,
        rule=rule,
        points=points,
        num_threads=num_threads,
        plan=Plan(plan),
        call=call,
    )


def _make_plan(
    rows: TuningRows,
    classifier: Classifier,
    selection: Selection,
    situation: Situation,
    rule: SelectionRule,
    points: list[GridPoint],
    notes: list[str],
    num_threads: int,
    reporter: Reporter,
) -> PlanRecord:
    """Time a step and count the rest."""
    parts, plugins, settings = rows.parts[0], situation.plugins, situation.settings
    data = _fold_data(rows.dataset, parts, classifier, plugins, settings, situation.task, num_threads)
    with limit_threads(num_threads), reporter.stage("Timing a step"):
        cost = measure_step(
            classifier,
            make_feed(data, plugins, settings),
            selection,
            loss=data.loss,
            regularizers=plugins.regularizers,
            settings=settings,
            features_are_fixed=plugins.features_are_fixed,
        )
    plan = make_plan(
        classifier,
        selection,
        settings,
        described=_described(plugins, settings, rule),
        points=points,
        num_folds=len(rows.parts),
        num_train=len(parts.train),
        num_val=len(parts.val),
        cost=cost,
        own_parameters=_own_parameters(plugins, classifier),
        notes=notes,
    )
    return plan.record


def plugins_of(call: Mapping[str, Any], task: Task) -> Plugins:
    """The plug-ins that the arguments of ``fine_tune`` ask for."""
    names = ("method", "regularizer", "batch_transform", "augmentation", "flip", "loss", "class_weights", "sampler")
    return choose_plugins(task=task, **{name: call[name] for name in names})


def find_model(model: str | Path | ModelSpec, weights_dir: str | Path | None) -> ModelSpec:
    """The one model that is named.

    Raises:
        UsageError: Several are named.
    """
    specs = read_zoo([model] if isinstance(model, ModelSpec) else str(model), weights_dir=weights_dir)
    if len(specs) != 1:
        names = ", ".join(spec.name for spec in specs)
        raise UsageError(f"--model names {len(specs)} models ({names}); fine-tune one at a time.")
    return specs[0]


def task_of(dataset: Dataset) -> Task:
    """What the targets are."""
    if dataset.is_multi_label:
        return "multi-label"
    return "binary" if len(dataset.class_names) == 2 else "multi-class"


def target_matrix(dataset: Dataset, rows: np.ndarray) -> Float[Tensor, "num_rows num_classes"]:
    """One-hot classes, or 0 and 1 for every label, float32."""
    targets = torch.from_numpy(np.ascontiguousarray(dataset.targets[rows])).long()
    if dataset.is_multi_label:
        return targets.float()
    return torch.nn.functional.one_hot(targets, len(dataset.class_names)).float()


def _open(data: str | Path | Dataset, call: Mapping[str, Any], reporter: Reporter) -> TuningRows:
    options = {name: call[name] for name in DATA_OPTIONS}
    return open_rows(data, val_fraction=call["val_fraction"], reporter=reporter, **options)


def _check(rows: TuningRows, *, strict: bool, reporter: Reporter) -> list[CheckRecord]:
    """Of the training rows alone, and of what is in two parts."""
    dataset = rows.dataset
    train = dataset if rows.num_folds is not None else dataset.take(rows.parts[0].train)
    found = check_rows(replace(train, splits=None), strict=strict, reporter=reporter)
    return found if rows.num_folds is not None else [*check_splits(dataset, strict=strict, reporter=reporter), *found]


def _load(spec: ModelSpec, call: Mapping[str, Any], *, scratch: bool, reporter: Reporter) -> Backbone:
    chosen = replace(random_weights_control(spec), name=spec.name) if scratch else spec
    return load_backbone(
        chosen,
        seed=call["seed"],
        device="cpu",
        weights_dir=call["weights_dir"],
        allow_download=call["allow_download"],
        image_size=call["image_size"],
        resize_policy=call["resize_policy"],
        reporter=reporter,
    )


def _settings(call: Mapping[str, Any], plugins: Plugins, *, num_train: int, num_parameters: int) -> TrainerSettings:
    given = {name: call[name] for name in _OF_TRAINER}
    precision = str(call["precision"])
    if precision not in PRECISIONS and precision not in PRECISIONS.values():
        raise UnknownNameError("precision", precision, PRECISIONS)
    given |= {
        "precision": PRECISIONS.get(precision, precision),
        "device": resolve_device(call["device"]),
        "num_processes": call["devices"],
        "checkpoint_every_steps": call["checkpoint_every"],
    }
    return choose_settings(given, plugins, num_train=num_train, num_parameters=num_parameters)


def _fold_data(
    dataset: Dataset,
    parts: Parts,
    classifier: Classifier,
    plugins: Plugins,
    settings: TrainerSettings,
    task: Task,
    num_threads: int,
) -> FoldData:
    train, val = dataset.take(parts.train), dataset.take(parts.val) if parts.val.size else None
    targets = target_matrix(dataset, parts.train)
    loss = plugins.loss.resolve(targets, task=task)
    val_images = None if val is None else TrainingImages(val, classifier.preprocessing, num_threads=num_threads)
    evaluate = SelectionMetrics(
        images=val_images,
        targets=dataset.targets[parts.val],
        matrix=target_matrix(dataset, parts.val),
        loss=loss,
        task=task,
        batch_size=max(settings.batch_size, 32),
        device=settings.device if settings.num_processes == 1 else "cpu",
    )
    images = TrainingImages(train, classifier.preprocessing, num_threads=num_threads)
    return FoldData(parts.fold, images, targets, loss, evaluate, _fingerprint(dataset, parts, classifier))


def _fingerprint(dataset: Dataset, parts: Parts, classifier: Classifier) -> str:
    rows = "|".join(",".join(map(str, part.tolist())) for part in (parts.train, parts.val, parts.test))
    facts = [dataset.fingerprint, rows, ",".join(dataset.class_names), classifier.preprocessing.describe()]
    facts += [hashlib.sha256(dataset.targets.tobytes()).hexdigest(), classifier.recipe.weights_fingerprint]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()


def _own_parameters(plugins: Plugins, classifier: Classifier) -> int:
    """Parameters that regularisers bring along, after a look at the network."""
    total = 0
    for regularizer in plugins.regularizers:
        regularizer.attach(classifier)
        try:
            total += sum(p.numel() for module in regularizer.modules() for p in module.parameters())
        finally:
            regularizer.detach()
    return total


def _described(plugins: Plugins, settings: TrainerSettings, rule: SelectionRule) -> dict[str, str]:
    """Every choice in force, in words."""
    slots: dict[str, str] = {}
    for plugin in plugins.describe():
        slots[plugin.kind] = f"{slots[plugin.kind]} + {plugin.spelling}" if plugin.kind in slots else plugin.spelling
    if plugins.augmentation.name != "none":
        slots["mirroring"] = "yes" if plugins.augmentation.flip else "no"
    head = settings.head_learning_rate
    described = {
        **slots,
        "sampler": plugins.sampler,
        "optimizer": settings.optimizer,
        "learning rate": f"{settings.learning_rate:g}" + ("" if head is None else f" (head {head:g})"),
        "schedule": f"{settings.schedule} after {settings.warmup_epochs:g} epochs of warm-up",
        "weight decay": f"{settings.weight_decay:g}",
        "precision": settings.precision,
        "device": settings.device + (f" × {settings.num_processes}" if settings.num_processes > 1 else ""),
        "picked by": rule.name,
    }
    if settings.layer_decay != 1:
        described["layer decay"] = f"{settings.layer_decay:g}"
    if settings.head_first:
        described["head first"] = f"at most {settings.head_epochs} epochs, patience {settings.head_patience}"
    if settings.accumulate > 1:
        described["accumulate"] = str(settings.accumulate)
    if settings.patience is not None:
        described["patience"] = str(settings.patience)
    return described
