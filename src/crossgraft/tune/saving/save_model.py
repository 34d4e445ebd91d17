"""Writing the folder of a fine-tuned model (see ``saved_model``)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import safetensors.torch

from crossgraft.data.checks.record import IDENTICAL_ACROSS
from crossgraft.edit.words import edited_images_in_words, predicted_unedited
from crossgraft.metrics.record import MetricRecord
from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.models.published_names import licence_in_words
from crossgraft.storage.atomic import refuse_to_replace_folder, replace_folder
from crossgraft.tasks import recorded_task
from crossgraft.tune.record import TunedModelRecord, TuningRecord
from crossgraft.tune.saving.record import SavedModelRecord, TrainingDataRecord
from crossgraft.tune.saving.saved_model import CARD_FILE, FACTS_FILE, WEIGHTS_FILE, checksums_of
from crossgraft.tune.sim.decorators import refuse_unstripped
from crossgraft.tune.words import (
    ADAPTED,
    CKA,
    NUMBERS,
    batch_norm_in_words,
    kept_in_words,
    kind_in_words,
    meaning_of,
    similarity_rows,
)
from crossgraft.version import __version__
from crossgraft.words.formatting import MISSING, NumberFormat, count, counted, short_fingerprint
from crossgraft.words.visible import visible

# The model card beside the weights, for people: what the model is, on what it was tested, and what it is not for.
#
# The headings follow Mitchell et al., Model cards for model reporting (2019). Everything in the card comes from ``model.json``.

NOT_STATED = "not stated"
_WITH_CROSSGRAFT = "```\ncrossgraft predict FOLDER_OF_THIS_CARD IMAGES\n```"
_MARKS = re.compile(r"([\\`*_\[\]<>|#])")


def model_card(facts: SavedModelRecord, *, how_to_use: str = _WITH_CROSSGRAFT) -> str:
    """The card in Markdown, with ``how_to_use`` as its last paragraph; the same facts give the same text."""
    parts = [
        f"# {_text(facts.model.name)}, fine-tuned on {_text(facts.trained_on.name)}",
        "**Research use, not a medical device.** The model has not been tested for any clinical use. Its output is a "
        "statement about pictures like those that it was trained on, not a diagnosis.",
        _heading("What it is", _identity(facts)),
        _heading("Training data", _data(facts.trained_on)),
        _heading("How well it does", _results(facts)),
        _heading("Probabilities and decisions", _decisions(facts)),
        _heading("What fine-tuning changed", _similarity(facts)),
        _heading("Limits", _limits(facts)),
        _heading("Licence", _licence(facts.model)),
        _heading("Use it", how_to_use),
    ]
    return "\n\n".join(parts) + "\n"


def _heading(title: str, text: str) -> str:
    return f"## {title}\n\n{text}"


def _text(text: str) -> str:
    """A name that Markdown shows as it is, on one line."""
    return _MARKS.sub(r"\\\1", visible(" ".join(text.split())))


def _items(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"- {name}: {value}" for name, value in facts)


def _identity(facts: SavedModelRecord) -> str:
    model = facts.model
    task, weights = recorded_task(facts), _text(short_fingerprint(model.weights_fingerprint))
    plugins = [
        (_text(kind_in_words(plugin).capitalize()), f"{_text(plugin.named)} ({_text(plugin.used)})") for plugin in facts.plugins
    ]
    return _items(
        [
            ("Architecture", f"{_text(model.architecture)} ({_text(model.source)}), {count(model.num_parameters)} parameters"),
            ("Pretrained weights", "none (trained from scratch)" if model.from_scratch else f"fingerprint {weights}"),
            (task.heading, ", ".join(_text(name) for name in facts.class_names)),
            *([] if task.partitions else [("Task", "an image may have several labels, or none")]),
            ("Images become", _text(model.preprocessing.description)),
            *plugins,
            ("Picked by", _text(facts.selection_rule)),
            ("Made with", f"crossgraft {_text(facts.crossgraft_version)}, seed {facts.seed}"),
            ("Fingerprint of the weights", _text(short_fingerprint(facts.weights_fingerprint))),
        ]
    )


def _data(data: TrainingDataRecord) -> str:
    groups = MISSING if data.num_groups is None else f"{count(data.num_groups)} by {_text(data.group_column or 'group')}"
    parts = [f"{_text(split.name)}: {counted(split.num_images, 'image')}" for split in data.splits]
    return _items(
        [
            ("Name", f"{_text(data.name)} ({_text(data.source.replace('_', ' '))})"),
            ("Images", count(data.num_images)),
            ("Patients or other groups", groups if data.num_groups is not None else "not known (no group column)"),
            ("Split", _text(data.split_method)),
            *([("Parts", "; ".join(parts))] if parts else []),
            ("Leakage", _text(data.leakage)),
            *([("How files were read", _text(" ".join(data.reading)))] if data.reading else []),
            *([] if data.edits is None else [("Edits", _text(edited_images_in_words(data.edits)))]),
            ("Fingerprint", _text(short_fingerprint(data.fingerprint))),
        ]
    )


def _results(facts: SavedModelRecord) -> str:
    rows = [row for row in facts.metrics if row.class_name is None and row.attribute is None]
    if not rows:
        return "No metric was measured on images that the model had not seen."
    head = "| metric | value | 95 % interval | measured on |\n|---|---:|---:|---|"
    lines = [
        f"| {_text(row.title)} | {_value(row)} | {_format(row).interval(row.low, row.high)} | {_measured_on(row)} |"
        for row in rows
    ]
    return "\n".join([head, *lines, "", " ".join(_notes(facts, {row.split for row in rows}))]).rstrip()


def _notes(facts: SavedModelRecord, splits: Collection[str]) -> list[str]:
    """What a reader has to know to read the table."""
    notes: list[str] = []
    if "test" in splits and not any(text.startswith(IDENTICAL_ACROSS) for text in facts.unsound):
        notes.append(
            "The rows of `test` had no part in training, in picking the model, or in fitting temperature and thresholds."
        )
    if "val" in splits:
        notes.append("The rows of `val` did pick it, so that their numbers are too good.")
    if recorded_task(facts).is_question:
        notes.append(f"AUC, average precision and F1 are of the class {_text(facts.class_names[-1])}.")
    return notes


def _format(row: MetricRecord) -> NumberFormat:
    width = None if row.low is None or row.high is None else row.high - row.low
    chosen = NumberFormat.for_column([row.value], interval_widths=[width])
    return NumberFormat(decimals=max(chosen.decimals, 2))


def _value(row: MetricRecord) -> str:
    return _format(row)(row.value) if row.value is not None else f"{MISSING} ({_text(row.reason or 'no value')})"


def _measured_on(row: MetricRecord) -> str:
    groups = "" if row.num_groups is None else f", {counted(row.num_groups, 'group')}"
    return f"{_text(row.split)}: {counted(row.num_images, 'image')}{groups}"


def _decisions(facts: SavedModelRecord) -> str:
    if facts.temperature is None:
        reason = f" ({_text(facts.temperature_reason)})" if facts.temperature_reason else ""
        calibration = f"Probabilities are not calibrated{reason}."
    else:
        how = f", {_text(facts.temperature_reason)}" if facts.temperature_reason else ""
        calibration = f"Probabilities are calibrated: logits are divided by the temperature {facts.temperature:.3g}{how}."
    lines = [
        f"- {_text(row.class_name)}: from probability {row.threshold:.3g} on ({_text(row.rule)}; fitted on "
        f"{_text(row.fitted_on)})"
        for row in facts.thresholds
        if row.threshold is not None
    ]
    if not lines:
        default = (
            "The decision is the most probable class."
            if recorded_task(facts).partitions
            else "A label is given from probability 0.5 on."
        )
        return f"{calibration} {default}"
    return f"{calibration} Decisions:\n\n" + "\n".join(lines)


def _similarity(facts: SavedModelRecord) -> str:
    lines: list[tuple[str, str]] = []
    if facts.keep is not None:
        lines.append(("To keep", _text(kept_in_words(facts.keep, facts.batch_norm))))
    if (norm := batch_norm_in_words(facts.batch_norm)) is not None:
        lines.append(("BatchNorm", _text(norm)))
    listed = f"\n\n{_items(lines)}" if lines else ""
    if not facts.similarity:
        return f"Similarity to the pretrained network: not measured.{listed}"
    text = "Similarity of the features of the test images to those of the pretrained network (1 = the same up to rotation)"
    return f"{text}:\n\n{_similarities(facts)}{listed}"


def _similarities(facts: SavedModelRecord) -> str:
    """As the report has them, with what they mean where BatchNorm statistics have a part in it."""
    measured, rows = facts.similarity, similarity_rows(facts.similarity)
    titles = [CKA[name] for name in next(iter(rows.values()))]
    head = f"| network | {' | '.join(titles)} |\n|---|{'---:|' * len(titles)}"
    lines = [f"| {name} | {' | '.join(map(NUMBERS, values.values()))} |" for name, values in rows.items()]
    meaning = meaning_of(measured, facts.batch_norm, from_scratch=facts.model.from_scratch)
    notes = [] if meaning is None else ["", f"{ADAPTED} {_text(meaning)}"]
    return "\n".join([head, *lines, *notes])


def _limits(facts: SavedModelRecord) -> str:
    limits = [
        "It was tested on images of the same source as its training images. Other scanners, hospitals and patients may give "
        "other results; measure them before you rely on it.",
        "It gives one of its classes for every picture, also for one that shows none of them.",
    ]
    if not recorded_task(facts).partitions:
        limits[1] = "It answers for every picture, also for one of a kind that it has never seen."
    if facts.trained_on.num_groups is None:
        limits.append("Without a column of patients it is not known whether one patient is in training and test.")
    edited = predicted_unedited(facts.trained_on.edits)
    limits = [*(f"Unsound data. {_text(text)}" for text in facts.unsound), *([_text(edited)] if edited else []), *limits]
    return "\n".join(f"- {limit}" for limit in limits)


def _licence(model: TunedModelRecord) -> str:
    source = "none used" if model.from_scratch else _text(licence_in_words(model.licence, model.name))
    return _items(
        [
            ("Of the pretrained weights", source),
            ("Of the training data", f"{NOT_STATED}; fill in"),
            ("Of these weights", f"{NOT_STATED}; fill in. It must respect both of the above"),
        ]
    )


def describe_saved_model(
    record: TuningRecord,
    classifier: Classifier,
    *,
    seed: int,
    training_key: str = "",
    test_fingerprint: str = "",
    window: str | None = None,
    slices: str | None = None,
) -> SavedModelRecord:
    """What ``save_model`` writes beside the weights, from the record of a fine-tuning.

    Args:
        record: Says on what the model was trained and how well it does.
        classifier: The network; its recipe is kept.
        seed: Random seed of the run.
        training_key: Key of the training that left the network, by which the ledger of looks knows it.
        test_fingerprint: Fingerprint of the test images, by which the ledger knows them.
        window: Requested intensities of DICOM and NIfTI images that became black and white.
        slices: Requested slices of volumes that were images.
    """
    data, calibration = record.dataset, record.calibration
    return SavedModelRecord(
        crossgraft_version=__version__,
        recipe=classifier.recipe.to_json(),
        model=record.model,
        task=data.task,
        class_names=data.class_names,
        temperature=None if calibration is None else calibration.temperature,
        temperature_reason=record.calibration_reason
        if calibration is None
        else calibration.reason or f"fitted on {calibration.fitted_on}",
        thresholds=record.thresholds,
        trained_on=TrainingDataRecord(
            name=data.name,
            source=data.source,
            fingerprint=data.fingerprint,
            num_images=data.num_images,
            num_groups=data.num_groups,
            group_column=data.group_column,
            split_method=data.split_method,
            leakage=record.leakage,
            splits=record.splits,
            reading=data.reading,
            window=window,
            slices=slices,
            edits=record.edits,
        ),
        plugins=record.plugins,
        selection_rule=record.selection_rule,
        primary_metric=record.primary_metric,
        metrics=[row for row in record.metrics if row.class_name is None and row.attribute is None],
        unsound=[f"{check.title}: {check.text}" for check in record.checks if check.severity == "unsound"],
        similarity=record.similarity,
        batch_norm=record.batch_norm,
        keep=record.keep,
        seed=seed,
        training_key=training_key,
        test_fingerprint=test_fingerprint,
        references=record.references,
    )


_FILES = (WEIGHTS_FILE, CARD_FILE, FACTS_FILE)


def save_model(
    folder: str | Path, classifier: Classifier, facts: SavedModelRecord, *, overwrite: bool = False
) -> SavedModelRecord:
    """Write the folder of a saved model, whole or not at all.

    Args:
        folder: Usually ``<run directory>/model``; folders above it are made.
        classifier: The network as it was evaluated.
        facts: Facts from ``describe_saved_model``; fingerprints of the weights are filled in here.
        overwrite: Replace another saved model in its place; no other files are replaced.

    Returns:
        The facts as they were written.

    Raises:
        UsageError: ρSIM was not taken off.
        RunDirectoryError: There is a saved model in its place and ``overwrite`` is off, or something else.
        StorageError: Disk full, no permission …; an older model stays as it was.
    """
    refuse_unstripped(classifier, "The network")
    folder = Path(folder)
    refuse_to_replace_folder(folder, _FILES, _is_saved_model, what="a saved model", overwrite=overwrite)
    state = {name: tensor.detach().to("cpu").contiguous().clone() for name, tensor in classifier.state_dict().items()}
    weights = safetensors.torch.save(state, metadata={"format": "pt"})
    facts = facts.model_copy(
        update={
            "recipe": classifier.recipe.to_json(),
            "weights_file": WEIGHTS_FILE,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "weights_fingerprint": weights_fingerprint(classifier),
        }
    )
    facts = facts.model_copy(update={"checksums": checksums_of(facts)})
    content: dict[str, str | bytes] = {
        WEIGHTS_FILE: weights,
        CARD_FILE: model_card(facts),
        FACTS_FILE: facts.model_dump_json(indent=1),
    }
    replace_folder(folder, content, what="the model", advice="Free some space or choose another --out.")
    return facts


def _is_saved_model(folder: Path) -> bool:
    facts = folder / FACTS_FILE
    return facts.is_file() and b'"kind": "model"' in facts.read_bytes()[:200]
