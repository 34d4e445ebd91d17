"""What will be trained, what stays frozen and why, and what it will cost; made before the first step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.edit.words import named
from crossgraft.errors import OtherRunError
from crossgraft.models.adapters import adapters_of
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.unattended import is_unattended
from crossgraft.tune.engine.selection_rule import MOST_TRAININGS, TOLERANCE
from crossgraft.tune.engine.step import selection_applied
from crossgraft.tune.planning.batch_norm import about_few_steps
from crossgraft.tune.planning.contradictions import notes_on, warnings_on
from crossgraft.tune.planning.in_force import InForce
from crossgraft.tune.planning.preparation import Preparation, settings_at
from crossgraft.tune.planning.rows import make_feed
from crossgraft.tune.planning.step_cost import (
    NOBODY_WAITS,
    StepCost,
    measure_step,
    network_multiply_adds,
    steps_per_epoch,
    training_multiply_adds,
)
from crossgraft.tune.protocols import SaysWhatItFound, Selection, attach
from crossgraft.tune.record import PlanRecord, PlanRow
from crossgraft.tune.words import adapters_in_words, compared_in_words, flops_in_words, memory_in_words, own_in_words
from crossgraft.words.formatting import count, counted, duration
from crossgraft.words.visible import visible


def planned_settings(prepared: Preparation) -> dict[str, str]:
    """Every setting in force, and the edits of the images; where the points of a grid differ, how at each of them."""
    chosen = [InForce.at(prepared, point).in_words() for point in prepared.request.points]
    names = dict.fromkeys(name for of_point in chosen for name in of_point)
    described = {name: " or ".join(dict.fromkeys(of_point.get(name, "none") for of_point in chosen)) for name in names}
    edits = prepared.rows.edits
    return described if edits is None else {"edited with": named(edits.edits)} | described


def settings_table(settings: Mapping[str, str]) -> list[str]:
    """One line per setting, names and values below each other."""
    width = max(map(len, settings), default=0)
    return [f"  {name:<{width}}  {value}" for name, value in settings.items()]


def refuse_other_defaults(planned: Mapping[str, str], prepared: Preparation) -> None:
    """Raise where an earlier version chose another mode of BatchNorm or learning rate; reasons and the head do not count.

    Raises:
        OtherRunError: With what differs. A learning rate that the grid varies is nobody's default.
    """
    now, varied = planned_settings(prepared), {name.replace("_", " ") for name in prepared.request.points[0]}
    different = [
        f"{name} was {planned[name].partition(' ')[0]} and is now {now[name]}"
        for name in ("batch norm", "learning rate")
        if name not in varied
        and name in planned
        and name in now
        and planned[name].partition(" ")[0] != now[name].partition(" ")[0]
    ]
    if different:
        raise OtherRunError(
            f"This run was planned by a version of crossgraft with other defaults: {'; '.join(different)}. Start it again with "
            "--overwrite or in another folder (--out); --batch-norm and --learning-rate bring the old choices back."
        )


PLAN_FILE = "plan.json"
"""In a run directory; a resumed run keeps the plan that it was started with."""
_SHOWN_NAMES = 3
_EVALUATION_SHARE = 1 / 3
"""A forward pass without gradients costs about a third of a step."""


@dataclass(frozen=True)
class Plan:
    """What ``crossgraft tune --plan`` prints; ``record`` holds every number."""

    record: PlanRecord

    def summary(self) -> str:
        """The plan in plain text: parameters by reason, steps, memory, time, notes."""
        record = self.record
        lines = [f"Trained: {counted(record.num_trained, 'parameter')}. Frozen: {count(record.num_frozen)}."]
        lines += [_row_in_words(row) for row in record.rows]
        if (flops := flops_in_words(record)) is not None:
            lines.append(f"#FLOPs: {flops}.")
        if record.num_own_parameters:
            lines.append(f"Regularisers: {own_in_words(record)}.")
        if record.num_adapter_parameters:
            lines.append(f"Adapters: {adapters_in_words(record)}.")
        lines += [
            "",
            *_images(record),
            *_grid(record),
            f"Steps: {_steps(record)} = {count(record.num_steps)} at most.",
            f"Memory: {memory_in_words(record)}. Time: {_time(record)}.",
        ]
        if record.settings:
            lines += ["", "Settings, those that were chosen for you too:", *settings_table(record.settings)]
        if record.notes:
            lines += ["", *(f"Note: {note}" for note in record.notes)]
        return "\n".join(map(visible, lines))

    def to_json(self) -> str:
        """The record as one JSON document."""
        return self.record.model_dump_json()

    def __str__(self) -> str:
        """The summary."""
        return self.summary()


def make_plan(prepared: Preparation, *, run: RunDirectory | None, reporter: Reporter, needs_time: bool = False) -> Plan:
    """The plan of all trainings, with the time of a step measured on this machine; a resumed run keeps its own.

    Args:
        prepared: Rows, network and options.
        run: Its folder, which keeps the plan.
        reporter: Says what the user may want to change.
        needs_time: Measure in a job of a study, too, where nobody else waits for the answer.

    Raises:
        OtherRunError: The resumed run was planned by a version with other defaults.
        OutOfMemoryError: Not even one step fits into memory.
    """
    record = None if run is None else run.read_record(PLAN_FILE, PlanRecord)
    if record is not None:
        refuse_other_defaults(record.settings, prepared)
    else:
        situation, rows = prepared.situation(), prepared.rows
        warnings = warnings_on(situation)
        for warning in warnings:
            reporter.warn(warning)
        leakage = [rows.leakage] if rows.dataset.groups is None else []
        notes = [*warnings, *notes_on(situation), *prepared.notes, *_about_rates(prepared), *_about_keep(prepared), *leakage]
        cost = NOBODY_WAITS if is_unattended() and not needs_time else _measure(prepared, reporter)
        record = plan_record(prepared, cost, notes)
    if run is not None:
        run.write_record(PLAN_FILE, record)
    return Plan(record)


def _about_rates(prepared: Preparation) -> list[str]:
    usual, points = prepared.settings.learning_rate, prepared.request.points
    is_usual = "learning_rate" in points[0] or all(settings_at(prepared, each).learning_rate == usual for each in points)
    return [] if is_usual else [about_few_steps(usual)]


def _about_keep(prepared: Preparation) -> list[str]:
    if prepared.keep is None:
        return []
    target, keepers = prepared.keep.target, prepared.situation().keepers
    compared = compared_in_words(adapted=prepared.keep.is_adapted)
    return [
        f"--keep {target:g} trains up to {MOST_TRAININGS} times with other factors of {keepers}, until features of val end "
        f"with a {compared} within {TOLERANCE:g} of it."
    ]


def _measure(prepared: Preparation, reporter: Reporter) -> StepCost:
    plugins, points = prepared.plugins, prepared.request.points
    settings = max((settings_at(prepared, point) for point in points), key=lambda each: (each.batch_size, each.dropout))
    data = prepared.fold_data(prepared.rows.parts[0])
    with limit_threads(prepared.num_threads), reuse_freed_memory(), reporter.stage("Timing a step"):
        return measure_step(
            prepared.classifier,
            make_feed(data, plugins, settings),
            prepared.selection,
            loss=data.loss,
            regularizers=plugins.regularizers,
            settings=settings,
            features_are_fixed=plugins.features_are_fixed,
            objective=plugins.objective,
            feature_transforms=plugins.feature_transforms,
        )


def plan_record(prepared: Preparation, cost: StepCost, notes: Sequence[str] = ()) -> PlanRecord:
    """Count parameters, steps and seconds."""
    classifier, points = prepared.classifier, prepared.request.points
    parts, num_folds = prepared.rows.parts[0], len(prepared.rows.parts)
    num_train, num_val = len(parts.train), len(parts.val)
    rows = plan_rows(classifier, prepared.selection)
    forward = network_multiply_adds(classifier)
    own_parameters, own_products, findings = _own_parts(prepared, forward)
    adapters = [part for _, adapter in adapters_of(classifier).values() for part in adapter.parameters()]
    steps, seconds = 0, 0.0
    # Folds are as large as the first; trainings without a domain are not, and each has settings of its own.
    of_trainings = [prepared] if prepared.rows.left_out is None else [prepared.for_parts(each) for each in prepared.rows.parts]
    repeats = num_folds // len(of_trainings)
    at_points = [(each, settings_at(each, point)) for each in of_trainings for point in points]
    longest = max((settings for _, settings in at_points), key=lambda at: at.epochs * steps_per_epoch(num_train, at.batch_size))
    for of_training, settings in at_points:
        own = of_training.rows.parts[0]
        in_epoch = steps_per_epoch(len(own.train), settings.batch_size)
        steps += in_epoch * settings.epochs
        if cost.seconds_per_image is not None:
            seen = len(own.train) + len(own.val) * _EVALUATION_SHARE
            once = seen if cost.features_once else seen * settings.epochs
            seconds += cost.seconds_per_image * once + cost.seconds_of_head_step * in_epoch * settings.epochs
    is_known = cost.seconds_per_image is not None
    most = 1 if prepared.keep is None else MOST_TRAININGS
    added = cost.added_seconds_per_image
    per_step = cost.seconds_per_image * longest.batch_size if cost.seconds_per_image is not None else None
    return PlanRecord(
        rows=rows,
        num_trained=sum(row.num_parameters for row in rows if row.trained),
        num_frozen=sum(row.num_parameters for row in rows if not row.trained),
        num_own_parameters=own_parameters,
        multiply_adds=forward,
        added_multiply_adds=own_products,
        num_adapter_parameters=sum(parameter.numel() for parameter in adapters),
        adapter_bytes=sum(parameter.numel() * parameter.element_size() for parameter in adapters),
        num_train=num_train,
        num_val=num_val,
        num_jobs=len(points) * num_folds * most,
        seeks_factor=prepared.keep is not None,
        epochs=longest.epochs,
        steps_per_epoch=steps_per_epoch(num_train, longest.batch_size),
        num_steps=steps * repeats * most,
        batch_size=longest.batch_size,
        grid=points if points != [{}] else None,
        settings=planned_settings(prepared),
        seconds_per_step=cost.seconds_of_head_step if cost.features_once else per_step,
        expected_seconds=seconds * repeats * most if is_known else None,
        expected_reason=cost.time_reason,
        peak_bytes=cost.peak_bytes,
        peak_reason=cost.memory_reason,
        added_seconds_per_step=None if added is None else added * longest.batch_size,
        added_bytes=cost.added_bytes,
        notes=[*notes, *findings],
    )


def plan_rows(classifier: Classifier, selection: Selection) -> list[PlanRow]:
    """Parameters with the same reason together; trained ones first, the most first."""
    sizes = {name: parameter.numel() for name, parameter in classifier.named_parameters()}
    rows: list[PlanRow] = []
    for trained, reasons in ((True, selection.trained), (False, selection.frozen)):
        by_reason: dict[str, list[str]] = {}
        for name, reason in reasons.items():
            by_reason.setdefault(reason, []).append(name)
        rows += [
            PlanRow(
                trained=trained,
                reason=reason,
                num_parameters=sum(sizes[name] for name in names),
                num_tensors=len(names),
                names=names if len(names) <= 2 * _SHOWN_NAMES else [*names[:_SHOWN_NAMES], *names[-_SHOWN_NAMES:]],
            )
            for reason, names in by_reason.items()
        ]
    return sorted(rows, key=lambda row: (not row.trained, -row.num_parameters))


def _own_parts(prepared: Preparation, forward: int) -> tuple[int, int | None, list[str]]:
    """What regularisers learn beside the network, what that adds to the ``forward`` multiply–adds, and what plug-ins find.

    The second is None where none of them looks into the network with parameters of its own.
    """
    total, added, findings = 0, list[int](), list[str]()
    classifier = prepared.classifier
    with selection_applied(classifier, prepared.selection):
        for regularizer in prepared.plugins.regularizers:
            attach(regularizer, classifier, seed=prepared.settings.seed)
            try:
                own = sum(p.numel() for module in regularizer.modules() for p in module.parameters())
                findings += regularizer.findings() if isinstance(regularizer, SaysWhatItFound) else []
                if own and (in_training := training_multiply_adds(classifier, regularizer)) is not None:
                    added.append(in_training - forward)
                total += own
            finally:
                regularizer.detach()
        for transform in prepared.plugins.feature_transforms:
            transform.attach(classifier)
            findings += transform.findings() if isinstance(transform, SaysWhatItFound) else []
            transform.detach()
    return total, sum(added) if added else None, findings


def _row_in_words(row: PlanRow) -> str:
    what = "trained" if row.trained else "frozen "
    first, last = row.names[0], row.names[-1]
    names = first if row.num_tensors == 1 else f"{first} … {last}"
    return f"  {what}  {count(row.num_parameters):>13}  {row.reason} ({counted(row.num_tensors, 'tensor')}: {names})"


def _images(record: PlanRecord) -> list[str]:
    if record.num_train is None or record.num_val is None:
        return []
    each = " in each training" if record.num_jobs > 1 else ""
    picks = f"{count(record.num_val)} to pick the epoch by" if record.num_val else "none to pick the epoch by"
    return [f"Images: {count(record.num_train)} to train on, {picks}{each}."]


def _grid(record: PlanRecord) -> list[str]:
    if record.grid is None:
        return []
    values = {name: dict.fromkeys(point[name] for point in record.grid) for name in record.grid[0]}
    axes = "; ".join(f"{name} {', '.join(f'{value:g}' for value in varied)}" for name, varied in values.items())
    return [f"Grid: {axes}. Val picks the best of {counted(len(record.grid), 'point')}."]


def _steps(record: PlanRecord) -> str:
    """Steps of one training times their number; of every kind of training where points of a grid differ in length."""
    kinds = {f"{record.epochs} epochs × {counted(record.steps_per_epoch, 'step')} of {record.batch_size} images": None}
    for point in record.grid or ():
        epochs, batch_size = int(point.get("epochs", record.epochs)), int(point.get("batch_size", record.batch_size))
        steps = steps_per_epoch(record.num_train or 0, batch_size)
        kinds[f"{epochs} epochs × {counted(steps, 'step')} of {batch_size} images"] = None
    trainings = f" × {record.num_jobs} trainings" if record.num_jobs > 1 else ""
    return f"({' or '.join(kinds)}){trainings}" if len(kinds) > 1 else f"{next(iter(kinds))}{trainings}"


def _time(record: PlanRecord) -> str:
    if record.expected_seconds is None:
        return record.expected_reason or "not measured"
    if math.isclose(record.expected_seconds, 0):
        return "nearly none"
    if record.seconds_beside is None:
        return f"about {duration(record.expected_seconds)} at most ({record.expected_reason})"
    all_of_it = duration(record.expected_seconds + record.seconds_beside)
    return f"about {all_of_it} at most; training takes {duration(record.expected_seconds)} of it ({record.expected_reason})"
