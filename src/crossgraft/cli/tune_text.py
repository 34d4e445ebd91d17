"""A fine-tuning as it ends in the terminal: at most 100 columns, answer last, no colour needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from crossgraft.cli.text_table import place, text_table, wrap
from crossgraft.records import CalibrationRecord, FoldRecord, GridPointRecord, MetricRecord, TuningRecord
from crossgraft.tasks import recorded_task
from crossgraft.words.formatting import MISSING, NumberFormat, counted, describe_classes, duration
from crossgraft.words.metric_words import doubt_in_words, metric_name_in_words
from crossgraft.words.plan_words import trained_in_words

_MOST_ROWS = 20
_NUMBERS = NumberFormat(decimals=3)


def tuning_text(record: TuningRecord, out: Path | None, report: Path | None) -> str:
    """Data and model, what was tried, the metrics, what limits them, the answer, the path of the report."""
    parts = [_heading(record), _trained(record), *_grid(record), *_folds(record), _metrics(record), *_decisions(record)]
    parts += [wrap(f"{check.title}: {check.text}") for check in record.checks if check.severity == "unsound"]
    parts += [wrap(f"Warning: {warning}") for warning in record.warnings]
    parts.append(wrap(record.leakage))
    parts.append("\n".join([wrap(_answer(record)), *_places(record, out, report)]))
    return "\n\n".join(parts)


def _heading(record: TuningRecord) -> str:
    data = record.dataset
    splits = ", ".join(f"{row.num_images} {row.name}" for row in record.splits if not record.folds)
    rows = f"{len(record.folds)} folds" if record.folds else splits
    first = " · ".join([data.name, f"{counted(data.num_images, 'image')} ({rows})", describe_classes(data)])
    second = " · ".join([record.model.name, record.plan.settings_line])
    return f"{wrap(first)}\n{wrap(second)}"


def _trained(record: TuningRecord) -> str:
    plan = record.plan
    trained = trained_in_words(plan)
    epochs = [row.num_epochs for row in record.grid if row.num_epochs is not None]
    many = f" in each of {len(record.grid)} trainings" if len(record.grid) > 1 else ""
    ran = f"at most {max(epochs)}" if many and len(set(epochs)) > 1 else f"{max(epochs)}" if epochs else "no"
    stopped = " (stopped early)" if any(row.stopped_early for row in record.grid) else ""
    return wrap(f"{trained}, {ran} epochs{stopped}{many}, {duration(record.seconds)}. {record.selection_rule}")


def _grid(record: TuningRecord) -> list[str]:
    """What was tried, where there was a choice."""
    if len({tuple(row.values.items()) for row in record.grid}) < 2 and all(row.state == "done" for row in record.grid):
        return []
    metric = metric_name_in_words(record.selection_metric)
    header = ["training", f"{metric} on val", "epoch", ""]
    rows = [[row.job, _NUMBERS(row.val_metric), str(row.best_epoch or MISSING), _state(row)] for row in record.grid]
    shown = text_table(header, rows[:_MOST_ROWS], right=header[1:3])
    more = f"\n… and {len(rows) - _MOST_ROWS} more in the report" if len(rows) > _MOST_ROWS else ""
    return [shown + more]


def _state(row: GridPointRecord) -> str:
    if row.state == "failed":
        return "failed"
    return "picked" if row.picked else ""


def _folds(record: TuningRecord) -> list[str]:
    if not record.folds:
        return []
    title = next((row.title for row in record.metrics if row.metric == record.primary_metric), record.primary_metric)
    header = ["fold", "train", "val", "test", title, "95 % interval"]
    rows = [_fold(row) for row in record.folds]
    return [text_table(header, rows, right=header[1:])]


def _fold(row: FoldRecord) -> list[str]:
    sizes = [str(number) for number in (row.num_train, row.num_val, row.num_test)]
    return [str(row.fold), *sizes, _NUMBERS(row.test_metric), _NUMBERS.interval(row.low, row.high)]


def _metrics(record: TuningRecord) -> str:
    split = record.metrics[0].split
    rows = [row for row in record.metrics if row.split == split and row.attribute is None]
    is_question = recorded_task(record.dataset).is_question
    overall = [row for row in rows if row.class_name is None or is_question]
    groups = next((row.num_groups for row in overall if row.num_groups is not None), None)
    of_groups = "" if groups is None else f" of {counted(groups, 'group')}"
    header = [f"on {overall[0].num_images} images{of_groups} ({split})", "value", "95 % interval"]
    table = text_table(header, [_metric(row) for row in overall], right=header[1:])
    reasons = [wrap(f"{row.title}: {row.reason}", indent="  ") for row in overall if row.reason]
    return "\n".join([table, *reasons])


def _metric(row: MetricRecord) -> list[str]:
    of = f" ({row.class_name})" if row.class_name is not None else ""
    less = "" if row.higher_is_better else ", less is better"
    return [f"{row.title}{of}{less}", _NUMBERS(row.value), _NUMBERS.interval(row.low, row.high)]


def _decisions(record: TuningRecord) -> list[str]:
    lines = [] if record.calibration is None else [_calibration(record.calibration)]
    if record.calibration_reason is not None:
        lines.append(f"No temperature: {record.calibration_reason}")
    for row in record.thresholds[:_MOST_ROWS]:
        if row.threshold is None:
            lines.append(f"Threshold of {row.class_name}: 0.5. {row.reason}")
        else:
            lines.append(f"Threshold of {row.class_name}: {row.threshold:.3f} ({row.rule}, fitted on {row.fitted_on}).")
    return ["\n".join(wrap(line) for line in lines)] if lines else []


def _calibration(calibration: CalibrationRecord) -> str:
    if calibration.temperature is None:
        return f"No temperature: {calibration.reason}"
    return (
        f"Temperature {calibration.temperature:.2f}, fitted on {calibration.fitted_on}: calibration error "
        f"{_NUMBERS(calibration.error_raw)} before, {_NUMBERS(calibration.error_calibrated)} after."
    )


def _answer(record: TuningRecord) -> str:
    found = record.metric(record.primary_metric)
    if found is None or found.value is None:
        return (
            f"{record.model.name} was fine-tuned; {record.primary_metric} has no value: {found.reason if found else ''}"
        )
    interval = "" if found.low is None else f", 95 % interval {_NUMBERS(found.low)} to {_NUMBERS(found.high)}"
    value = f"{metric_name_in_words(found.metric)} {_NUMBERS(found.value)}{interval}"
    doubt = doubt_in_words(found, len(record.dataset.class_names))
    return (
        f"{record.model.name}: {value}, on {counted(found.num_images, 'held-out image')}. "
        f"{f'{doubt} ' if doubt else ''}Research use, not a medical device."
    )


def _places(record: TuningRecord, out: Path | None, report: Path | None) -> Sequence[str]:
    if out is None:
        return []
    page = [] if report is None else [place("Report", report)]
    if record.saved_model is None:
        return [wrap(f"No single model: {record.saved_model_reason}."), *page]
    return [place("Model", out / record.saved_model), *page]
