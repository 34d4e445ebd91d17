"""``audit_model``: how far models lean on an artefact, or on who is in the picture."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from crossgraft.audit import sweep_work as _audit_sweep
from crossgraft.audit import trained_work as _audit_trained
from crossgraft.audit.confounded import Artefact
from crossgraft.audit.frequency_work import frequency_frame
from crossgraft.audit.mitigation import MITIGATIONS, EmpiricalRisk, Mitigation
from crossgraft.audit.options import AuditOptions
from crossgraft.audit.outcomes import Gate, judge, read_gates
from crossgraft.audit.record import AGAINST, AuditMetric, AuditRecord
from crossgraft.audit.result import Asked, AuditCall, Audited
from crossgraft.audit.subjects import Subject
from crossgraft.audit.words import answer_in_words, headline
from crossgraft.choice import choose, pieces, spell
from crossgraft.compute import available_cores, limit_threads, resolve_device, reuse_freed_memory
from crossgraft.data.describe import describe_dataset, make_thumbnails
from crossgraft.data.given_images import location_of
from crossgraft.data.opening import data_errors_first
from crossgraft.edit.edits import choose_edits
from crossgraft.errors import UsageError
from crossgraft.options._option import configuration
from crossgraft.options._values import refuse_given
from crossgraft.progress import Reporter
from crossgraft.records.base import LooksRecord
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.result import FineTuningResult, ModelResult
from crossgraft.tune.saving.saved_model import SavedModel

PluginT = TypeVar("PluginT")
EXIT_GATE = 5
"""What the command line ends with where a condition of ``--fail-on`` holds, or nothing could be assessed."""


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result[AuditRecord]):
    """What models lean on: ``record`` holds every number."""

    def summary(self) -> str:
        """Which models rely on what."""
        return answer_in_words(self.record)

    @property
    def primary(self) -> Mapping[str, object]:
        """What the page leads with, of the first model and confounder that have it."""
        found = (entry.metric(headline(entry)[1]) for entry in self.record.entries)
        metric = next((each for each in found if each is not None and each.value is not None), None)
        return {} if metric is None else {"metric": metric.name, "value": metric.value, "low": metric.low, "high": metric.high}

    def to_frame(self) -> pd.DataFrame:
        """One row per model, confounder and mitigation."""
        return entries_frame(self.record)

    @property
    def exit_code(self) -> int:
        """5 where a condition of ``fail_on`` holds, or could not be looked at anywhere."""
        return EXIT_GATE if any(gate.state != "passed" for gate in self.record.gates) else 0


@verb("audit", AuditOptions)
def audit_model(model: Any, options: AuditOptions, run: Run) -> Audit:
    """Put an artefact into real images under control, and measure how far models rely on it.

    A model that is trained already is asked about test images without the artefact and with it. Of pretrained models,
    classifiers are trained where a share of the positives carries the artefact, and tested where it goes with the class
    (i.i.d.) and where it goes against it (o.o.d.); the shortcut reliance index sums up the gap over all shares.

    Args:
        model: Run directory of ``crossgraft tune``, what ``fine_tune`` or ``select_model`` returned, ``.onnx`` file, classifier
            or function, which is asked as it is; or names of pretrained models as ``rank`` takes them, which are trained.
        {options}

    Returns:
        One of seven outcomes for each model and confounder, never silence, and models beside each other; with ``out`` also
        ``report.html``, ``report.json``, ``audit.csv``, ``curves.csv``, ``differences.csv``, ``manifest.csv`` and ``run.json``
        there. Its ``exit_code`` is 5 where a condition of ``fail_on`` holds.

    Raises:
        DataError: Something is wrong with the images or labels, or a part has too few images of a class.
        UsageError: An argument is wrong or contradicts another.
        UnknownNameError: A name is not known; the message gives the nearest names.
        MissingWeightsError: Weights are not on this machine.
        RunDirectoryError: ``out`` is in use or holds another run.

    Cost: of a trained model one pass over the test images and three per artefact; where the artefact pulls answers, three of the
    starting network, one of them over its training images, and where that leaves it open eight more of the model. In quick mode
    one pass over all images and one over those that may carry it, per model and artefact, then milliseconds per fold and share;
    in full mode a fine-tuning each.
    """
    reporter, began = run.reporter, time.perf_counter()
    model = _handed_over(model) if isinstance(model, ModelResult) else model
    asked = _asked(options)
    gates = read_gates(options.fail_on)
    device, threads = resolve_device(options.device), options.workers or available_cores()
    trained = _is_trained(model)
    how = _audit_trained if trained else _audit_sweep
    with nullcontext() if trained else data_errors_first(options.data, options):
        described = how.describe(model, options, reporter)
    out = None if options.plan else options.out
    resolved = {**described, "confounders": [each.name for each in asked.artefacts], "shares": list(asked.shares)}
    typed = {**configuration(options), **resolved, "data": location_of(options.data)}
    with (
        limit_threads(threads),
        reuse_freed_memory(),
        run.directory(location_of(options.data), typed=typed, resolved=resolved, out=out) as directory,
    ):
        if directory:
            directory.describe_machine(reporter, threads=threads, device=device)
        audited = how.audit(AuditCall(model, asked, options, directory, reporter, device, threads))
        record = _record(audited, asked, options, gates, seconds=time.perf_counter() - began)
        if options.ledger and not options.plan:
            record = record.model_copy(update={"looks": _count_look(audited, reporter)})
        return _finish(Audit(record), audited, directory, reporter, options)


def _count_look(audited: Audited, reporter: Reporter) -> LooksRecord | None:
    """A fine-tuned model is the look of its training; classifiers of a sweep are nothing that anybody picks."""
    each = [f"{entry.confounder} {entry.mitigation}" for entry in audited.entries]
    measured = [audited.fingerprint, *each] if audited.training_key is None else [audited.training_key]
    return count_test_look(
        audited.dataset, audited.test, measured, None, command="audit", reporter=reporter, is_result=audited.mode == "trained"
    )


def _handed_over(given: ModelResult[Any]) -> FineTuningResult | SavedModel:
    """The fine-tuning of a selection, which knows its test images; without a folder the model alone.

    Raises:
        UsageError: Only a plan was made.
    """
    if isinstance(given, FineTuningResult):
        return given
    return given.model if given.fine_tuning is None or given.out is None else given.fine_tuning


def _asked(options: AuditOptions) -> Asked:
    """What the options name, looked up before any image is opened.

    Raises:
        UnknownNameError: With the nearest names.
        UsageError: A number is out of its range.
    """
    attributes = list(dict.fromkeys(_texts(options.attributes)))
    readable = list(dict.fromkeys(_texts(options.readable)))
    named = _texts(options.confounders)
    artefacts = [_artefact(each) for each in named or ("tag",)] if named or not (attributes or readable) else []
    if not artefacts:
        refuse_given(options, _OF_ARTEFACTS, "is about artefacts, and only columns are named (--attribute, --readable)")
    absent = [] if options.absent is None else choose_edits(options.absent)
    if absent and any(each.against is not None for each in artefacts):
        raise UsageError(
            f"--absent is for all artefacts, and A{AGAINST}B says it of one. Write it of each, or leave --absent out."
        )
    chosen = [each if isinstance(each, Mitigation) else choose(MITIGATIONS, each) for each in _texts(options.mitigate)]
    chosen = list({spell(each): each for each in chosen}.values())  # each once
    mitigations = [each for each in chosen if not isinstance(each, EmpiricalRisk)]  # which is always there
    if mitigations and options.mode == "full":
        raise UsageError("--mitigate works on frozen features. Leave out --mode full.")
    for name, value, most in (("strength", options.strength, np.inf), ("negatives", options.negatives, 1.0)):
        if not (np.isfinite(value) and 0 <= value <= most):
            raise UsageError(f"--{name} must be at least 0{'' if most > 1 else ' and at most 1'}, got {value!r}.")
    return Asked(
        list({each.name: each for each in artefacts}.values()), attributes, absent, mitigations, _shares(options.shares), readable
    )


def _artefact(given: object) -> Artefact:
    """``poisson_image:1e7``, or ``poisson_image:1e7 against poisson_image``.

    Raises:
        UnknownNameError: There is no such edit.
        UsageError: An artefact is against itself, or against several.
    """
    if isinstance(given, Artefact):
        return given
    texts = given.split(AGAINST) if isinstance(given, str) else [given]
    if len(texts) > 2:
        raise UsageError(f"An artefact is against one edit: A{AGAINST}B; got {given!r}.")
    artefact = Artefact(*choose_edits(texts))
    if artefact.against is not None and artefact.against == artefact.edit:
        raise UsageError(f"{spell(artefact.edit)} is against itself, so that nothing would tell images apart. Change one level.")
    return artefact


_OF_ARTEFACTS = ("absent", "negatives", "stage", "strength", "unit")


def _shares(given: str | Sequence[float]) -> tuple[float, ...]:
    texts = given.split(",") if isinstance(given, str) else list(given)
    try:
        shares = tuple(float(each) for each in texts)
    except ValueError:
        raise UsageError(f"--shares are numbers with commas, for example 0,0.5,1; got {given!r}.") from None
    if len(shares) < 3 or shares[0] != 0 or list(shares) != sorted(set(shares)) or shares[-1] > 1:
        raise UsageError(
            "--shares must ascend from 0 to at most 1, at least three: reliance is what changes from the share 0 on; got "
            f"{', '.join(f'{share:g}' for share in shares)}."
        )
    return shares


def _texts(given: str | Sequence[Any]) -> list[Any]:
    """Names with options; a piece between commas that is an option belongs to the name before it."""
    return (
        pieces(given)
        if isinstance(given, str)
        else [part for each in given for part in (pieces(each) if isinstance(each, str) else [each])]
    )


def _is_trained(model: object) -> bool:
    """Whether it gives answers already."""
    if isinstance(model, str | Path):
        path = Path(model)
        return path.suffix == ".onnx" or any((path / name).is_file() for name in ("run.json", "model.json", "model/model.json"))
    return isinstance(model, Subject | SavedModel | FineTuningResult) or callable(model) or hasattr(model, "predict_proba")


def _record(audited: Audited, asked: Asked, options: AuditOptions, gates: Sequence[Gate], *, seconds: float) -> AuditRecord:
    return AuditRecord(
        dataset=describe_dataset(audited.dataset, show_names=options.show_names),
        positive=audited.positive,
        mode=audited.mode,
        models=audited.models,
        confounders=audited.confounders,
        entries=audited.entries,
        differences=audited.differences,
        shares=list(asked.shares) if audited.mode != "trained" else [],
        num_folds=options.audit_folds if audited.mode != "trained" else 1,
        num_test=len(audited.test),
        num_positive_test=int(audited.is_positive[audited.test].sum()),
        test_mode=options.test_mode,
        unit=options.unit,
        stage=options.stage,
        negatives=options.negatives,
        strength=options.strength,
        seed=options.seed,
        frequency=audited.frequency,
        file_facts=audited.file_facts,
        readable=audited.readable,
        needs=audited.needs,
        gates=[] if options.plan else judge(gates, audited.entries),
        checks=audited.checks,
        notes=audited.notes,
        references=audited.references,
        seconds=seconds,
    )


def _finish(result: Audit, audited: Audited, run: RunDirectory | None, reporter: Any, options: AuditOptions) -> Audit:
    if run is None:
        return result
    run.describe_data(audited.dataset.fingerprint)
    run.describe_weights(reporter, {model.name: model.weights_fingerprint for model in result.record.models})
    tables = {
        "audit.csv": result.to_frame(),
        "curves.csv": curves_frame(result.record),
        "differences.csv": differences_frame(result.record),
        "manifest.csv": audited.manifest,
        "attribute_rows.csv": audited.attribute_rows,
        "frequency.csv": frequency_frame(result.record),
        "readable.csv": readable_frame(result.record),
    }
    page = publish(
        run,
        result.record,
        reporter,
        tables={name: table for name, table in tables.items() if len(table)},
        split=audited.dataset.split,
        # where no artefact was drawn, a few of each class
        thumbnails=None
        if options.no_images
        else lambda: (audited.pictures and audited.pictures()) or make_thumbnails(audited.dataset),
    )
    return replace(result, out=run.path, report=page)


def entries_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder and mitigation."""
    rows: list[dict[str, object]] = []
    for entry in record.entries:
        row = entry.model_dump(include={"model", "confounder", "mitigation", "outcome", "reason"})
        for metric in entry.metrics:
            row |= _with_ends(metric)
            if entry.mode != "trained" and metric.patients_low is not None:
                row |= {f"{metric.name} patients low": metric.patients_low, f"{metric.name} patients high": metric.patients_high}
        detected = None if entry.detectability is None else entry.detectability.value
        rows.append({**row, "detectability": detected, "input_rms": entry.input_rms})
    return pd.DataFrame(rows)


def readable_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, attribute and kind of features."""
    return pd.DataFrame(
        [
            {
                **row.model_dump(include={"model", "attribute", "features", "num_images", "num_with"}),
                **_with_ends(row.auc),
                **({} if row.more_than_random_weights is None else _with_ends(row.more_than_random_weights)),
                **({} if row.more_than_class is None else _with_ends(row.more_than_class)),
            }
            for row in record.readable
        ]
    )


def _with_ends(metric: AuditMetric) -> dict[str, float | None]:
    return {metric.name: metric.value, f"{metric.name} low": metric.low, f"{metric.name} high": metric.high}


def curves_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder, mitigation and share."""
    rows: list[dict[str, object]] = []
    for entry in record.entries:
        row = entry.model_dump(include={"model", "confounder", "mitigation"})
        for point in entry.points:
            numbers = {name: value for metric in point.metrics for name, value in _with_ends(metric).items()}
            if numbers:
                rows.append({**row, "share": point.share, "realised": point.realised, **numbers})
    return pd.DataFrame(rows)


def differences_frame(record: AuditRecord) -> pd.DataFrame:
    """One row per model, confounder and share; without a share, of the whole curve."""
    rows: list[dict[str, object]] = []
    for each in record.differences:
        points = [
            (point.share, point.ood, {"p": point.p_value, "p holm": point.p_value_holm, "p floor": point.floor})
            for point in each.points
        ]
        for share, metric, tests in [(None, each.reliance, dict[str, float]()), *points]:
            row = {"model": each.model, "reference": each.reference, "confounder": each.confounder, "quantity": metric.name}
            ends = {"patients low": metric.patients_low, "patients high": metric.patients_high}
            rows.append({**row, "share": share, "difference": metric.value, **ends, **tests})
    return pd.DataFrame(rows)
