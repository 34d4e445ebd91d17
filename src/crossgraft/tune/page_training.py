"""How a model was fine-tuned: folds, grid, and what was trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from crossgraft.metrics.page import metrics_figure
from crossgraft.metrics.plots import reliability_figure
from crossgraft.metrics.record import CalibrationRecord, ThresholdRecord
from crossgraft.models.published_names import licence_in_words
from crossgraft.report.blocks import Block, Facts, Figure, Folded, Items, Paragraph, Section
from crossgraft.report.plots.intervals import IntervalRow
from crossgraft.report.plots.scatter import Interval
from crossgraft.report.source import Source
from crossgraft.report.tables import INTERVAL, Cell, Column, Table, counts, interval, number, table_of, whole, words, yes_or_no
from crossgraft.tune.page_curves import selection_title
from crossgraft.tune.page_domains import marks_oracle
from crossgraft.tune.record import FoldRecord, PlanRow, TuningRecord
from crossgraft.tune.words import (
    adapters_in_words,
    batch_norm_in_words,
    flops_in_words,
    kept_in_words,
    kind_in_words,
    memory_in_words,
    trained_in_words,
)
from crossgraft.words.formatting import MISSING, NumberFormat, count, counted, duration, joined

RowT = TypeVar("RowT")
_METRIC = NumberFormat(decimals=3)
_SHARE = NumberFormat(decimals=2)


@marks_oracle
def calibration_section(source: Source[TuningRecord]) -> Section | None:
    """Whether probabilities mean what they say, before and after the temperature."""
    record = source.record
    calibration = record.calibration
    if calibration is None:
        if record.calibration_reason is None:
            return None
        text = f"Probabilities were not calibrated: {record.calibration_reason.rstrip('.')}."
        return Section(name="calibration", title="Calibration", part="evidence", blocks=[Paragraph(text)])
    models = "folds" if record.unseen_domains is None else "trainings"
    blocks: list[Block] = [Paragraph(_in_words(calibration, models))]
    if any(bin_.num_images for bin_ in calibration.bins_raw):
        drawing = reliability_figure(calibration.bins_raw, calibration.bins_calibrated, identifier=f"{source.prefix}reliability")
        caption = (
            "Each mark is a bin of images by the probability that the model states, its area the number of images. On the dashed "
            "line probabilities mean what they say; below it the model is too sure of itself."
        )
        blocks.append(Figure([drawing], caption=caption))
    return Section(name="calibration", title="Calibration", part="evidence", blocks=blocks)


def _in_words(calibration: CalibrationRecord, models: str) -> str:
    images = counted(calibration.num_images, "image")
    before, after = _METRIC(calibration.error_raw), _METRIC(calibration.error_calibrated)
    if calibration.temperature is None:
        reason = (calibration.reason or "not stated why").rstrip(".")
        return f"No temperature was fitted: {reason}. The calibration error is {before} on unseen images."
    tells = "less sure" if calibration.temperature > 1 else "surer"
    several = ""
    if len(calibration.temperatures) > 1:
        low, high = min(calibration.temperatures), max(calibration.temperatures)
        several = f" The {models} have temperatures from {low:.3g} to {high:.3g}."
    return (
        f"Logits are divided by the temperature {calibration.temperature:.3g}, fitted on {calibration.fitted_on} ({images}), "
        f"which makes the model {tells}.{several} The calibration error is {before} before and {after} after it, on images "
        "that it was not fitted on."
    )


@marks_oracle
def thresholds_section(source: Source[TuningRecord]) -> Section | None:
    """From which probability on a class is decided for; None where the most probable class is."""
    thresholds = source.record.thresholds
    if not thresholds:
        return None
    text = (
        "The threshold was chosen on the validation rows; sensitivity and specificity beside it are of those rows and look "
        "better than they are. What the decisions are worth is under Metrics."
    )
    blocks = [Paragraph(text, page_only=True), thresholds_table(thresholds)]
    return Section(name="thresholds", title="Decision thresholds", part="evidence", blocks=blocks)


def thresholds_table(thresholds: Sequence[ThresholdRecord]) -> Table:
    """One row per class or label."""
    return table_of(
        thresholds,
        [
            (Column("Class"), lambda row: words(row.class_name)),
            (Column("Threshold", numeric=True), lambda row: number(row.threshold, _METRIC)),
            (Column("Rule", place=1), lambda row: words(row.rule)),
            (Column("Fitted on", place=1), lambda row: words(row.fitted_on)),
            (Column("Positive images", numeric=True, place=1), lambda row: whole(row.num_positive)),
            (Column("Sensitivity", numeric=True), lambda row: number(row.sensitivity, _SHARE)),
            (Column("Specificity", numeric=True), lambda row: number(row.specificity, _SHARE)),
        ],
        caption="From which probability on a class is decided for",
        file_name="thresholds",
        notes=[f"{row.class_name}: {row.reason.rstrip('.')}." for row in thresholds if row.reason],
    )


_ESSENTIAL = ("Pretrained model", "Method", "Regulariser", "To keep", "BatchNorm", "Adapters", "Parameters", "Epochs", "Time")


def folds_section(source: Source[TuningRecord]) -> Section | None:
    """What each fold gave on images that its model had not seen; None without folds."""
    record = source.record
    if not record.folds:
        return None
    title = next((row.title for row in record.metrics if row.metric == record.primary_metric), record.primary_metric)
    blocks: list[Block] = metrics_figure(
        [IntervalRow(f"fold {fold.fold}", Interval(fold.test_metric, fold.low, fold.high)) for fold in record.folds],
        x_label=f"{title} on the held-out rows",
        identifier=f"{source.prefix}folds",
        caption=f"{title} of each fold with its 95 % interval. The folds share training images, so their spread is no "
        "interval of the mean.",
    )
    return Section(name="folds", title="Folds", part="evidence", blocks=[*blocks, _folds(record.folds)])


def _folds(folds: Sequence[FoldRecord]) -> Table:
    settings = list(dict.fromkeys(name for fold in folds for name in fold.picked))
    return table_of(
        folds,
        [
            (Column("Fold"), lambda fold: words(f"fold {fold.fold}")),
            (Column("Training images", numeric=True), lambda fold: whole(fold.num_train)),
            (Column("Validation images", numeric=True), lambda fold: whole(fold.num_val)),
            (Column("Held out", numeric=True), lambda fold: whole(fold.num_test)),
            (Column("Groups held out", numeric=True), lambda fold: whole(fold.num_groups)),
            *_of_settings(settings, lambda fold: fold.picked),
            (Column("Epoch kept", numeric=True), lambda fold: whole(fold.best_epoch)),
            (Column("Validation", numeric=True), lambda fold: number(fold.val_metric, _METRIC)),
            (Column("Held-out metric", numeric=True), lambda fold: number(fold.test_metric, _METRIC)),
            (INTERVAL, lambda fold: interval(fold.low, fold.high, _METRIC)),
        ],
        caption="Folds",
        file_name="folds",
        notes=[f"Fold {fold.fold}: {fold.reason.rstrip('.')}." for fold in folds if fold.reason],
    )


def _of_settings(
    names: Sequence[str], values: Callable[[RowT], Mapping[str, float | int | str]]
) -> list[tuple[Column, Callable[[RowT], Cell]]]:
    """A column for each setting that a grid varies."""

    def cell(row: RowT, name: str) -> Cell:
        value = values(row).get(name)
        return words(f"{value:g}" if isinstance(value, float) else None if value is None else str(value))

    return [(Column(name.replace("_", " ")), partial(cell, name=name)) for name in names]


def grid_section(source: Source[TuningRecord]) -> Section | None:
    """What was tried, and what selection saw of it; None where nothing was compared."""
    points = source.record.grid
    if not any(point.values for point in points) and all(point.state == "done" for point in points):
        return None
    settings = list(dict.fromkeys(name for point in points for name in point.values))
    with_folds = any(point.fold is not None for point in points)
    table = table_of(
        points,
        [
            (Column("Run"), lambda point: words(point.job)),
            *([(Column("Fold", numeric=True), lambda point: whole(point.fold))] if with_folds else []),
            *_of_settings(settings, lambda point: point.values),
            (Column("Validation metric", numeric=True), lambda point: number(point.val_metric, _METRIC, strong=point.picked)),
            (Column("Validation loss", numeric=True), lambda point: number(point.val_loss, _METRIC)),
            (Column("Epoch kept", numeric=True), lambda point: whole(point.best_epoch)),
            (Column("Epochs", numeric=True), lambda point: whole(point.num_epochs)),
            (Column("Stopped early"), lambda point: yes_or_no(point.stopped_early if point.state == "done" else None)),
            (Column("Picked"), lambda point: words("picked" if point.picked else "failed" if point.state == "failed" else None)),
            (Column("Seconds", numeric=True), lambda point: number(point.seconds, NumberFormat(decimals=1))),
        ],
        caption=f"Runs: {selection_title(source.record)} on the validation rows",
        file_name="grid",
        notes=[f"{point.job}: {point.reason.rstrip('.')}." for point in points if point.reason],
    )
    text = "Only validation rows were looked at here; the best of several runs looks better on them than it is."
    return Section(name="grid", title="What was tried", part="evidence", blocks=[Paragraph(text), table])


def plan_section(source: Source[TuningRecord]) -> Section:
    """What was trained and what was frozen, why, and with which settings."""
    record = source.record
    plan, model = record.plan, record.model
    own = f"; {count(plan.num_own_parameters)} more of regularisers, trained beside it" if plan.num_own_parameters else ""
    norm = batch_norm_in_words(record.batch_norm)
    expected = "not estimated" if plan.expected_seconds is None else f"at most {duration(plan.expected_seconds)}"
    facts = [
        ("Pretrained model", f"{model.name}: {model.architecture} ({model.source})"),
        ("Licence of its weights", licence_in_words(model.licence, model.name)),
        ("Starts from", "random weights" if model.from_scratch else "the pretrained weights"),
        *(
            (kind_in_words(plugin).capitalize(), "; ".join(filter(None, [f"{plugin.named} ({plugin.used})", plugin.reference])))
            for plugin in record.plugins
        ),
        *([] if record.keep is None else [("To keep", kept_in_words(record.keep, record.batch_norm))]),
        *([] if norm is None else [("BatchNorm", norm)]),
        ("Parameters", trained_in_words(plan) + own),
        *([("Adapters", adapters_in_words(plan))] if plan.num_adapter_parameters else []),
        *([] if (flops := flops_in_words(plan)) is None else [("#FLOPs", flops)]),
        ("Memory of training", memory_in_words(plan)),
        ("Epochs", _epochs(record)),
        ("Steps", f"{count(plan.steps_per_epoch)} an epoch, batches of {plan.batch_size}"),
        ("Time", f"{duration(record.seconds)}; expected {expected}"),
        ("Devices", f"{joined(record.devices) or MISSING}; {counted(record.num_processes, 'process', 'processes')}"),
        ("Precision", record.precision),
        ("Images become", model.preprocessing.description),
    ]
    settings = Facts([(name, value) for name, value in plan.settings.items()])
    blocks: list[Block] = [Facts(facts, essential=_ESSENTIAL), _trained(plan.rows)]
    notes = [note for note in dict.fromkeys([*plan.notes, *record.notes]) if note != record.leakage]
    if notes:
        blocks.append(Items(notes))
    if plan.settings:
        blocks.append(Folded("Every setting", [settings]))
    return Section(name="plan", title="What was trained", part="how it was made", blocks=blocks)


def _epochs(record: TuningRecord) -> str:
    """How many epochs were trained, of how many."""
    ran = [row.num_epochs for row in record.grid if row.num_epochs is not None]
    done = "none" if not ran else str(ran[0]) if len(set(ran)) == 1 else f"{min(ran)} to {max(ran)}"
    stopped = ", stopped early" if any(row.stopped_early for row in record.grid) else ""
    many = f", in each of {len(record.grid)} trainings" if len(record.grid) > 1 else ""
    return f"{done} of {counted(record.plan.epochs, 'epoch')}{stopped}{many}"


def _trained(rows: Sequence[PlanRow]) -> Table:
    return table_of(
        rows,
        [
            (Column("Why"), lambda row: words(row.reason)),
            (Column("State"), lambda row: words("trained" if row.trained else "frozen")),
            (Column("Parameters", numeric=True), lambda row: counts(row.num_parameters)),
            (Column("Tensors", numeric=True), lambda row: counts(row.num_tensors)),
            (Column("Names"), lambda row: words(", ".join(row.names))),
        ],
        caption="Parameters that were trained, and parameters that were frozen",
        file_name="parameters",
        page_only=True,
        muted_rows=frozenset(place for place, row in enumerate(rows) if not row.trained),
    )
