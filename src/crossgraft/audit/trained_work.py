"""An audit of a model that is trained already: it is asked about test images without an artefact and with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from crossgraft.audit.attribute_sweep import TrainedAttributeAudit, audit_trained_attribute
from crossgraft.audit.confounded import AuditRows, Confounded, positive_class
from crossgraft.audit.explained import Start, features_of
from crossgraft.audit.frequency_work import of_trained
from crossgraft.audit.group_metrics import gap_metrics, mean_cells
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.outcomes import Concluded, conclude_attribute, conclude_trained, needed_of_artefact, needed_of_attribute
from crossgraft.audit.readable import ProbedFeatures, looks_beside
from crossgraft.audit.record import AuditEntry, AuditMetric, AuditPoint, ConfounderRecord, ReadableRow
from crossgraft.audit.result import AuditCall, Audited
from crossgraft.audit.subjects import Probabilities, Subject, subject_of
from crossgraft.audit.sweep_work import file_facts, find_attribute, open_data, pictures, read_all
from crossgraft.audit.trained import TrainedAudit, audit_trained, named_start, positives_of, start_of
from crossgraft.choice import spell
from crossgraft.data import Dataset
from crossgraft.data.checks import check_rows
from crossgraft.data.inspection import without_name
from crossgraft.edit._image_edit import ImageEdit
from crossgraft.edit.edits import Editing
from crossgraft.edit.words import predicted_unedited
from crossgraft.errors import DataError, UsageError
from crossgraft.metrics import MetricValue
from crossgraft.models.trusted_code import trusted_code
from crossgraft.options._values import refuse_given
from crossgraft.progress import Reporter
from crossgraft.records.base import CheckRecord, Reference
from crossgraft.tasks import DEFAULT_THRESHOLD
from crossgraft.tune.pretrained_start import pretrained_start
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.rows_of_run import run_directory_of, split_of_run
from crossgraft.words.formatting import counted

_OF_TRAINING = (
    "mode",
    "shares",
    "audit_folds",
    "fold_method",
    "negatives",
    "unit",
    "test_mode",
    "micro_auc",
    "batch_size",
    "cache_dir",
    "absent",
    "mitigate",
    "method",
    "epochs",
    "learning_rate",
    "image_size",
    "resize_policy",
)


def describe(model: Any, options: AuditOptions, reporter: Reporter) -> dict[str, object]:
    """What decides the result beside options.

    Raises:
        UsageError: An option is about training, and this model is trained.
    """
    refuse_given(options, _OF_TRAINING, "is for models that are trained for the audit, and this one is trained already")
    start = named_start(options, reporter)
    named = {} if start is None else {"start": start.describe()}
    return {"model": str(model) if isinstance(model, str | Path) else type(model).__name__, **named}


def audit(call: AuditCall) -> Audited:
    """One model with every artefact.

    Raises:
        DataError: As of the data; or the model does not know a class.
        UnknownNameError: An attribute is named that the data do not have.
    """
    model, asked, options, reporter = call.model, call.asked, call.options, call.reporter
    for each in asked.artefacts:
        if each.against is not None:
            raise UsageError(
                f"{each.name} is for models that are trained for the audit, and this one is trained already. Write "
                f"--confounder {spell(each.edit)}."
            )
    subject = subject_of(model, device=call.device, allow_code=options.allow_code, class_names=_class_names(model, options))
    opening = replace(options, class_names=None) if isinstance(options.data, Dataset) else options
    dataset = open_data(opening, reporter, default_split=False)
    checks = list[CheckRecord](check_rows(dataset, strict=options.strict, reporter=reporter))
    test, note = _test_rows(model, subject, dataset)
    positive = positive_class(dataset, options.positive)
    is_positive = np.array(dataset.class_names)[dataset.targets] == positive
    audited = Audited(dataset, test, positive, is_positive, "trained", checks=checks, notes=[note])
    edited = None if subject.model is None else predicted_unedited(subject.model.facts.trained_on.edits)
    audited.notes += [] if edited is None else [edited]
    others = len(dataset.class_names) - 1
    audited.notes += [f"{positive} is told from all {others} other classes together."] if others > 1 else []
    images = dataset.take(test)
    rows = AuditRows(images, positive, is_positive[test], (), np.arange(len(images)))
    shown: list[Confounded] = []
    for each in asked.artefacts:
        audited.needs += needed_of_artefact(each.name, rows.is_positive, images.groups, positive)
    for name in asked.attributes:
        audited.needs += needed_of_attribute(name, rows.is_positive, find_attribute(images, name, options))
    for name in asked.readable:
        find_attribute(dataset, name, options)
    if options.plan:
        return audited
    positives_of(subject, images, positive)  # whether the model can be asked at all is no matter of a single artefact
    seen = _as_seen(subject, images, options)
    before = subject.probabilities(seen, reporter)
    start: Start | str = ""
    if asked.artefacts:
        start = start_of(model, subject, _as_seen(subject, dataset, options), test, is_positive, options, reporter, call.device)
    for each in asked.artefacts:
        _one(subject, seen, before, each.edit, start, options, audited, shown, reporter)
    for name in asked.attributes:
        _attribute(subject, images, name, options, audited, reporter)
    audited.readable += _readable(call, subject, dataset, test, audited)
    if options.frequency:
        audited.frequency = of_trained(call, subject, images, shown, positive)
    audited.file_facts += file_facts(images, options, audited)
    audited.fingerprint = _fingerprint(subject, audited)
    audited.training_key = None if subject.model is None else subject.model.facts.look_key
    audited.references += [Reference(key=each.edit.title, text=f"{each.edit.reference}.") for each in asked.artefacts]
    audited.pictures = lambda: pictures(shown, rows)
    return audited


def _one(
    subject: Subject,
    images: Dataset,
    before: Probabilities,
    edit: ImageEdit,
    start: Start | str,
    options: AuditOptions,
    audited: Audited,
    shown: list[Confounded],
    reporter: Reporter,
) -> None:
    """One artefact: an entry, whatever comes of it."""
    name = spell(edit)
    try:
        result = audit_trained(
            subject,
            images,
            edit,
            positive=audited.positive,
            strength=options.strength,
            threshold=own_threshold(subject, audited.positive),
            seed=options.seed,
            before=before,
            start=start,
            reporter=reporter,
        )
    except DataError as error:
        audited.confounders.append(ConfounderRecord.of_edit(name, edit, None))
        audited.entries.append(AuditEntry.impossible(subject.name, name, without_name(error), mode="trained"))
        reporter.warn(f"{name} cannot be put into these images: {error}")
        return
    editing = Editing([edit], strength=options.strength, seed=options.seed)
    shown.append(Confounded(name, edit, editing, images, images, images.edited(editing), result.edit))
    too_small = None if subject.model is None else shown[-1].too_small(subject.model.classifier.preprocessing)
    concluded = conclude_trained(result, positive=audited.positive, too_small=too_small, strength=options.strength)
    audited.confounders.append(shown[-1].record)
    audited.entries.append(trained_entry(subject.name, name, result, concluded))


def trained_entry(model: str, confounder: str, result: TrainedAudit | TrainedAttributeAudit, concluded: Concluded) -> AuditEntry:
    """One trained model and one artefact or attribute."""
    areas = {"clean_auc": result.clean, "aligned_auc": result.aligned, "ood_auc": result.ood, "both_auc": result.both}
    if isinstance(result, TrainedAttributeAudit):
        return _entry(model, confounder, result, concluded, {"overall_auc": result.overall, **areas}, {})
    (positives, negatives), pull = result.decided_otherwise, result.pull
    shares = {
        "flip_effect_positives": result.flip_effect_positives,
        "flip_effect_negatives": result.flip_effect_negatives,
        "changed_positives": positives,
        "changed_negatives": negatives,
    }
    if pull is not None:
        pulls = {"pull": pull.of_model, "pull_over_start": pull.over_start, "pull_over_shams": pull.over_shams}
        areas |= {name: value for name, value in pulls.items() if value is not None}
        shares = {"pull_positives": pull.of_positives, "pull_negatives": pull.of_negatives, **shares}
    entry = _entry(model, confounder, result, concluded, {"reverse_drop": result.reverse_drop, **areas}, shares)
    probe = result.detectability
    reach = {
        "detectability": None if probe is None else AuditMetric.over_patients("detectability", probe.auc),
        "input_rms": result.input_rms,
    }
    return entry.model_copy(update={**reach, "start": result.start, "shams": result.shams})


def _entry(
    model: str,
    confounder: str,
    result: TrainedAudit | TrainedAttributeAudit,
    concluded: Concluded,
    areas: Mapping[str, MetricValue],
    others: Mapping[str, float],
) -> AuditEntry:
    """What artefacts and attributes have in common: areas with intervals, and numbers without."""
    return AuditEntry(
        model=model,
        confounder=confounder,
        mode="trained",
        **concluded._asdict(),
        metrics=[
            *(AuditMetric.over_patients(name, value) for name, value in {"auc_drop": result.drop, **areas}.items()),
            *(AuditMetric(name=name, value=value) for name, value in others.items()),
            AuditMetric.over_patients("worst_group_accuracy", result.groups.worst.accuracy),
            *gap_metrics([result.groups]),
        ],
        points=[AuditPoint(share=1.0, realised=1.0, metrics=[], cells=mean_cells([result.groups]))],
    )


def _fingerprint(subject: Subject, audited: Audited) -> str:
    """What names the model: its weights; of what can only be asked its name and how well it does."""
    if subject.model is not None:
        return subject.model.facts.weights_fingerprint
    clean = [metric.value for entry in audited.entries if (metric := entry.metric("clean_auc")) is not None]
    return f"{subject.name} {clean[:1]}"


def _as_seen(subject: Subject, images: Dataset, options: AuditOptions) -> Dataset:
    """What artefacts are put into: images as they are, or resized for the network.

    Raises:
        UsageError: There is no network whose input is known.
    """
    if options.stage == "native":
        return images
    if subject.model is None:
        raise UsageError(
            f"--stage input needs a network whose input is known, and {subject.name} can only be asked. Leave it out."
        )
    return images.resized(subject.model.classifier.preprocessing)


def _attribute(subject: Subject, images: Dataset, name: str, options: AuditOptions, audited: Audited, reporter: Reporter) -> None:
    """One attribute: an entry, whatever comes of it."""
    attribute = find_attribute(images, name, options)
    audited.confounders.append(ConfounderRecord.of_attribute(name, attribute.in_words, attribute.num_missing))
    threshold = own_threshold(subject, audited.positive)
    try:
        result = audit_trained_attribute(
            subject, images, attribute, positive=audited.positive, threshold=threshold, reporter=reporter
        )
    except DataError as error:
        audited.entries.append(AuditEntry.impossible(subject.name, name, str(error), mode="trained"))
        reporter.warn(f"{name} cannot be audited with these images: {error}")
        return
    audited.entries.append(trained_entry(subject.name, name, result, conclude_attribute(result)))


def own_threshold(subject: Subject, positive: str) -> float:
    """From which probability of the class on the model decides for it: its own threshold, where it has one."""
    facts = None if subject.model is None else subject.model.facts
    known = {} if facts is None else {row.class_name: row.threshold for row in facts.thresholds}
    threshold = known.get(positive)
    if threshold is None and facts is not None and len(facts.class_names) == 2:  # the threshold is that of the other class
        of_other = next((value for value in known.values() if value is not None), None)
        threshold = None if of_other is None else math.nextafter(1 - of_other, math.inf)
    return DEFAULT_THRESHOLD if threshold is None else threshold


def _readable(call: AuditCall, subject: Subject, dataset: Dataset, test: np.ndarray, audited: Audited) -> list[ReadableRow]:
    """What a probe reads from the features of the model, of the network that it started from, and beside both.

    Raises:
        UsageError: The model can only be asked.
    """
    options, saved = call.options, subject.model
    if not call.asked.readable:
        return []
    if saved is None:
        raise UsageError(f"--readable needs the features of a network, and {subject.name} can only be asked. Leave it out.")
    looks = [
        ProbedFeatures("features after fine-tuning", features_of(saved.classifier, dataset, call.reporter, named=subject.name))
    ]
    before = pretrained_start(call.model, saved, options, call.reporter)
    if isinstance(before, str):
        audited.notes.append(f"What could be read before fine-tuning is not known: {before}")
    else:
        looks.append(ProbedFeatures("features before fine-tuning", features_of(before, dataset, call.reporter)))
    trusted = trusted_code(options.allow_code)
    looks += looks_beside(
        saved.classifier, dataset, seed=options.seed, trusted=trusted, device=call.device, reporter=call.reporter
    )
    learned = np.setdiff1d(np.arange(len(dataset)), test)
    return read_all(subject.name, looks, learned, test, call, audited)


def _class_names(model: object, options: AuditOptions) -> list[str] | None:
    """Names that were given for a function, which knows none."""
    names = options.class_names
    return list(names) if callable(model) and isinstance(names, list | tuple) else None


def _test_rows(model: object, subject: Subject, dataset: Dataset) -> tuple[np.ndarray, str]:
    """Rows that the model has not learned from, as far as that can be known, and which they are in words.

    Raises:
        DataError: There are none.
    """
    facts = None if subject.model is None else subject.model.facts
    run = model.out if isinstance(model, FineTuningResult) else model
    is_its_own = facts is not None and dataset.fingerprint in facts.trained_on.fingerprints
    if is_its_own and isinstance(run, str | Path):
        split = run_directory_of(Path(run)) / "split.json"
        if not split.is_file():
            raise DataError(f"{split} is missing, so the test images of the run are not known. Give the whole run directory.")
        drawn = split_of_run(Path(run))
        if drawn.num_images == len(dataset):  # not of the fewer rows of --limit, --class-shares or --pair-by
            return np.sort(drawn.rows("test")), "Measured on the test part of the run."
    has_test = dataset.splits is not None and bool((dataset.splits == "test").any())
    rows = np.flatnonzero(dataset.splits == "test") if has_test else np.arange(len(dataset))
    known = None if subject.model is None else subject.model.known_images
    if known is not None:
        return _without_known(rows, dataset, known, part="the test part of the data" if has_test else "images")
    if has_test:
        return rows, "Measured on the test part of the data."
    if is_its_own:
        return rows, "Measured on all images, those among them that the model was trained on: give its run."
    return rows, "Measured on all images: whether the model has learned from some of them is not known here."


def _without_known(rows: np.ndarray, dataset: Dataset, known: frozenset[str], *, part: str) -> tuple[np.ndarray, str]:
    """The rows whose image had no part in the fine-tuning, pixel by pixel, nor one of its group; and which they are in words.

    Raises:
        DataError: There are none.
    """
    is_known = np.array([digest.hex() in known for digest in dataset.image_digests])
    left = rows[~is_known[rows]]
    if len(left) == 0:
        raise DataError(
            f"The model was fine-tuned with {'this image' if len(rows) == 1 else f'all {len(rows)} images'}. Give images "
            "that it has not seen, or its run with all data of the run: then the test part is used."
        )
    apart = left if dataset.groups is None else left[~np.isin(dataset.groups[left], dataset.groups[is_known])]
    if len(apart) == 0:
        raise DataError(
            f"Each of the {counted(len(left), 'image')} that the model was not fine-tuned with is of a group "
            f"({dataset.group_column}) that it was fine-tuned with. Give images of others."
        )
    out, kin = len(rows) - len(left), len(left) - len(apart)
    if not out + kin:
        return left, f"Measured on {part}: none is, pixel by pixel, one that the model was fine-tuned with."
    of_groups = f", and without {kin} of the same groups ({dataset.group_column})" if kin else ""
    return apart, f"Measured on {part} without {counted(out, 'image')} that the model was fine-tuned with{of_groups}."
