"""What an audit answers of what checklists of reporting guidelines ask; a topic that it did not deal with has no answer."""

from __future__ import annotations

from collections.abc import Mapping

from crossgraft.audit.record import AuditRecord
from crossgraft.data.page import data_of, images_read, reading_of, rows_of, software
from crossgraft.report.checklists import AnswerOf, Topic
from crossgraft.report.source import Source
from crossgraft.words.formatting import count, counted, short_fingerprint


def _preprocessing(source: Source[AuditRecord]) -> str | None:
    described = dict.fromkeys(model.preprocessing.description for model in source.record.models)
    return reading_of(source, "; ".join(described)) if described else None


def _models(source: Source[AuditRecord]) -> str | None:
    models = [
        f"{model.name} ({model.architecture} of {model.source}, {count(model.num_parameters)} parameters)"
        for model in source.record.models
        if model.role == "candidate"
    ]
    return "; ".join(models) if models else None


def _initial_weights(source: Source[AuditRecord]) -> str | None:
    """Fingerprints of networks that the audit trains itself; None where a model came trained."""
    if source.record.mode == "trained":
        return None
    names = [
        f"{model.name} {short_fingerprint(model.weights_fingerprint)}"
        for model in source.record.models
        if model.role == "candidate"
    ]
    return f"pretrained weights with the fingerprints {', '.join(names)}" if names else None


def _parts(source: Source[AuditRecord]) -> str | None:
    record = source.record
    if record.mode == "trained":
        return None
    return f"{counted(record.num_folds, 'fold')}; {record.dataset.split_method}"


def _robustness(source: Source[AuditRecord]) -> str | None:
    """Outcomes of what could be assessed, and of nothing else."""
    entries = [entry for entry in source.record.entries if entry.is_assessable]
    if not entries:
        return None
    found = [f"{entry.model} with {entry.confounder}: {_OUTCOMES.get(entry.outcome, entry.outcome)}" for entry in entries]
    return "shortcuts put into the images, or attributes of them: " + "; ".join(found)


_OUTCOMES = {"relies": "relies on it", "sensitive": "is sensitive to it", "passes": "passes", "undecided": "not decided"}


def _uncertainty(source: Source[AuditRecord]) -> str | None:
    metrics = [metric for entry in source.record.entries for metric in entry.metrics if metric.low is not None]
    unit = "patients" if source.record.dataset.num_groups is not None else "images, each taken as independent"
    return f"intervals of 95 % over folds and {unit}" if metrics else None


def _explained(source: Source[AuditRecord]) -> str | None:
    frequency = source.record.frequency
    if frequency is None or not any(each.psd for model in frequency.models for each in model.priorities):
        return None
    return "spectra of gradients at the input, which say what frequencies it looks at, beside those of the artefacts"


AUDIT_ANSWERS: Mapping[Topic, AnswerOf] = {
    "source of the data": data_of,
    "preprocessing": _preprocessing,
    "subset of images": rows_of,
    "unreadable images": images_read,
    "how parts were made": _parts,
    "model": _models,
    "software": software,
    "initial weights": _initial_weights,
    "uncertainty": _uncertainty,
    "robustness": _robustness,
    "what the network looks at": _explained,
}
