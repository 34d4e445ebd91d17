"""What a fine-tuning answers of what checklists of reporting guidelines ask; a topic that it did not deal with has no answer."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.data.page import data_of, images_read, reading_of, rows_of, software
from crossgraft.edit.page import edited_with
from crossgraft.metrics.record import MetricRecord
from crossgraft.metrics.words import metric_in_words
from crossgraft.report.checklists import AnswerOf, Topic
from crossgraft.report.source import Source
from crossgraft.report.verdict import caveats_of
from crossgraft.tasks import recorded_task
from crossgraft.tune.caveats import TUNING_CAVEATS, UNSEEN, headline, is_new
from crossgraft.tune.record import TunedModelRecord, TuningRecord
from crossgraft.words.formatting import count, counted, short_fingerprint


def describe_network(model: TunedModelRecord) -> str:
    """Architecture, size, input and output."""
    return (
        f"{model.name}: {model.architecture} of {model.source} with {count(model.num_parameters)} parameters; takes images of "
        f"{model.preprocessing.channels}×{model.preprocessing.height_pixels}×{model.preprocessing.width_pixels}; "
        f"{count(model.num_features)} features; {counted(model.num_outputs, 'output')}"
    )


def _preprocessing(source: Source[TuningRecord]) -> str:
    read = reading_of(source, source.record.model.preprocessing.description)
    return "; ".join([read, *edited_with(source.record.edits)])


def _parts(source: Source[TuningRecord]) -> str | None:
    record = source.record
    if not record.splits and not record.folds:
        return None
    parts = ", ".join(f"{count(split.num_images)} {split.name}" for split in record.splits)
    folds = f"{len(record.folds)} folds, each tested once" if record.folds else ""
    return f"{record.dataset.split_method} ({', '.join(each for each in (parts, folds) if each)})"


def _unit(source: Source[TuningRecord]) -> str | None:
    """Only where it was looked at, and nobody is in two parts."""
    record = source.record
    if not record.leakage_checked or record.dataset.group_column is None or not record.leakage.startswith("No "):
        return None
    return f"no group of the column {record.dataset.group_column} is in two parts"


def _images(source: Source[TuningRecord]) -> str | None:
    parts = [
        f"{split.name} {counted(split.num_images, 'image')}"
        + ("" if split.num_groups is None else f" of {counted(split.num_groups, 'group')}")
        for split in source.record.splits
    ]
    return ", ".join(parts) if parts else None


def _classes(source: Source[TuningRecord]) -> str | None:
    names = source.record.dataset.class_names
    parts = [
        f"{split.name} " + ", ".join(f"{count(number)} {name}" for name, number in zip(names, split.class_counts, strict=True))
        for split in source.record.splits
    ]
    return "; ".join(parts) if parts else None


def _initial_weights(source: Source[TuningRecord]) -> str:
    model = source.record.model
    if model.from_scratch:
        return "random weights, drawn by the seed of the run"
    return f"pretrained weights {model.name} (fingerprint {short_fingerprint(model.weights_fingerprint)}), with a new head"


def _training(source: Source[TuningRecord]) -> str:
    plan = source.record.plan
    used = ", ".join(f"{plugin.kind.replace('_', ' ')} {plugin.named}" for plugin in source.record.plugins)
    named = {plugin.kind.replace("_", " ") for plugin in source.record.plugins}
    settings = ", ".join(f"{name} {value}" for name, value in plan.settings.items() if name not in named)
    return (
        f"{used}; {settings}; batches of {plan.batch_size}, at most {counted(plan.epochs, 'epoch')} of "
        f"{counted(plan.steps_per_epoch, 'step')}; {count(plan.num_trained)} parameters trained"
    )


def _choice(source: Source[TuningRecord]) -> str:
    record = source.record
    tried = f"; {len(record.grid)} trainings were compared" if len(record.grid) > 1 else ""
    return f"{record.selection_rule.rstrip('.')}{tried}"


def _measures(source: Source[TuningRecord]) -> str | None:
    record = source.record
    titles = list(dict.fromkeys(row.title for row in record.metrics if row.value is not None))
    if not titles:
        return None
    primary = next((row.title for row in record.metrics if row.metric == record.primary_metric), None)
    return ", ".join(titles) + ("" if primary is None else f"; {primary} is the one of the headline")


def _uncertainty(source: Source[TuningRecord]) -> str | None:
    rows = [row for row in source.record.metrics if row.low is not None]
    if not rows:
        return None
    unit = "groups of images" if any(row.num_groups is not None for row in rows) else "images, each taken as independent"
    return f"intervals of 95 % that count {unit}"


def _unseen(source: Source[TuningRecord]) -> MetricRecord | None:
    """The headline; None where the model was picked on the images that it was measured on."""
    primary = headline(source.record)
    return None if primary is None or primary.value is None or primary.split not in UNSEEN else primary


def _held_out(source: Source[TuningRecord]) -> str | None:
    if (primary := _unseen(source)) is None:
        return None
    known = " that had no part in training or in picking the model" if is_new(source.record, primary) else ""
    return f"{counted(primary.num_images, 'image')} ({primary.split}){known}"


def _performance(source: Source[TuningRecord]) -> str | None:
    return None if (primary := _unseen(source)) is None else metric_in_words(primary)


def _performance_of_classes(source: Source[TuningRecord]) -> str | None:
    """Sensitivity and specificity with both ends of their intervals."""
    rows = [
        row
        for row in source.record.metrics
        if row.metric in ("sensitivity", "specificity") and row.class_name is not None and row.attribute is None
        and row.split in UNSEEN and row.value is not None and row.low is not None and row.high is not None
    ]  # fmt: skip
    if not rows:
        return None
    return "; ".join(f"{row.title} of {row.class_name}: {row.value:.2f} ({row.low:.2f} to {row.high:.2f})" for row in rows)


def _subgroups(source: Source[TuningRecord]) -> str | None:
    rows = [row for row in source.record.metrics if row.attribute is not None and row.value is not None]
    attributes = list(dict.fromkeys(row.attribute for row in rows if row.attribute is not None))
    return f"{rows[0].title} and other measures by {', '.join(attributes)}" if attributes else None


def _domains(source: Source[TuningRecord]) -> str | None:
    unseen = source.record.unseen_domains
    if unseen is None or not any(each.unseen is not None for each in unseen.domains):
        return None
    measured = [each for each in unseen.domains if each.unseen is not None and each.unseen.value is not None]
    values = ", ".join(f"{each.domain} {each.unseen.value:.2f}" for each in measured if each.unseen and each.unseen.value)
    return f"{unseen.title} by {unseen.column}, each value without a part in the training: {values}" if values else None


def _elsewhere(source: Source[TuningRecord]) -> str | None:
    """Images of a domain that training never saw; not where it helped to pick the model."""
    unseen = source.record.unseen_domains
    return None if unseen is None or unseen.is_oracle else _domains(source)


def _mistakes(source: Source[TuningRecord]) -> str | None:
    mistakes = source.record.mistakes
    if mistakes is None:
        return None
    shown = f"; the {len(mistakes.most_certain)} most certain ones are listed" if mistakes.most_certain else ""
    return f"{count(mistakes.num_wrong)} of {counted(mistakes.num_images, 'image')} had a wrong answer{shown}"


def _limitations(source: Source[TuningRecord]) -> str | None:
    caveats = caveats_of(source, TUNING_CAVEATS)
    return " ".join(caveat.text for caveat in caveats) or None


def _balance(source: Source[TuningRecord]) -> str:
    record = source.record
    data, settings = record.dataset, record.plan.settings
    shares = ", ".join(f"{count(number)} {name}" for name, number in zip(data.class_names, data.class_counts, strict=True))
    dealt = [f"{name} {settings[name]}" for name in ("sampler", "loss") if name in settings]
    return f"{shares}; {', '.join(dealt)}" if dealt else shares


def _output(source: Source[TuningRecord]) -> str:
    record = source.record
    temperature = None if record.calibration is None else record.calibration.temperature
    scaled = "not calibrated" if temperature is None else f"after temperature {temperature:.3g}"
    fitted = [row for row in record.thresholds if row.threshold is not None]
    rule = ", ".join(f"{row.class_name} from {row.threshold:.3g} on ({row.rule}, on {row.fitted_on})" for row in fitted)
    return f"a probability of each class, {scaled}; {rule or recorded_task(record.dataset).default_decision}"


def _saved(source: Source[TuningRecord]) -> str | None:
    folder = source.record.saved_model
    return None if folder is None else f"all weights with head, preprocessing, temperature and thresholds, in the folder {folder}"


TUNING_ANSWERS: Mapping[Topic, AnswerOf] = {
    "source of the data": data_of,
    "images in each part": _images,
    "classes in each part": _classes,
    "preprocessing": _preprocessing,
    "subset of images": rows_of,
    "unreadable images": images_read,
    "how parts were made": _parts,
    "unit of the parts": _unit,
    "model": lambda source: describe_network(source.record.model),
    "software": software,
    "initial weights": _initial_weights,
    "training": _training,
    "choice of the model": _choice,
    "ensemble": lambda _: "none: each image is answered by one network",
    "measures": _measures,
    "uncertainty": _uncertainty,
    "test on held-out images": _held_out,
    "test on images from elsewhere": _elsewhere,
    "performance": _performance,
    "performance of each class": _performance_of_classes,
    "subgroups": _subgroups,
    "domains": _domains,
    "mistakes": _mistakes,
    "limitations": _limitations,
    "class balance": _balance,
    "output": _output,
    "saved model": _saved,
}
