"""``distil``: several fine-tuned networks become one backbone that has learned from all of their images."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from crossgraft.compute import available_cores, limit_threads, resolve_device, reuse_freed_memory
from crossgraft.data import Dataset
from crossgraft.data.describe import describe_dataset
from crossgraft.data.given_images import location_of
from crossgraft.distil import DistilledStep, Domain, UniversalBackbone, distil_domains
from crossgraft.distil.domains import REFERENCE, history_frame, metrics_of_student, metrics_of_teacher, seen_elsewhere, summarise
from crossgraft.distil.options import DistillationSettings, Distilling, DistilOptions
from crossgraft.distil.page import answer_in_words
from crossgraft.distil.record import DistillationRecord, DistilledDomainRecord
from crossgraft.errors import DataError, UsageError
from crossgraft.models import Backbone, load_as_asked
from crossgraft.models.backbone import describe_model
from crossgraft.models.trusted_code import trusted_code
from crossgraft.models.zoo import one_model
from crossgraft.options._option import configuration, narrowed, options_of
from crossgraft.progress import Reporter
from crossgraft.result import Result
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Run, verb
from crossgraft.tasks import recorded_task
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.parts import TuningRows
from crossgraft.tune.rows_of_run import options_of_run, refuse_join_outside, refuse_other_data, refuse_root_outside, rows_of_run
from crossgraft.tune.saving.saved_model import SavedModel, load_saved_model

WEIGHTS_FILE = "universal.safetensors"
"""The backbone in the run directory; ``--model`` reads it."""


@dataclass(frozen=True, eq=False, repr=False)
class Distilled(Result[DistillationRecord]):
    """Several networks in one: ``record`` holds every number.

    Attributes:
        student: The network that came out, with a head per domain.
        weights: File of the backbone, which ``--model`` reads; None where nothing was written.
    """

    student: UniversalBackbone | None = field(default=None, kw_only=True)
    weights: Path | None = field(default=None, kw_only=True)

    def summary(self) -> str:
        """What the student is worth beside its teachers."""
        return answer_in_words(self.record)

    def places(self) -> Mapping[str, object]:
        """The weights, and the report."""
        return {**({} if self.weights is None else {"Weights": self.weights}), **super().places()}

    @property
    def primary(self) -> Mapping[str, object]:
        """The primary metric of the student: of one domain, or its mean over several that have the same."""
        domains = self.record.domains
        students = [row for domain in domains if (row := domain.student) is not None]
        values = [row.value for row in students if row.value is not None]
        if len(domains) > 1 and len(values) == len(domains) and len({row.metric for row in students}) == 1:
            return {"metric": students[0].metric, "value": fmean(values), "network": "student", "domain": "mean of all"}
        first = students[0].number if students else {}
        return {**{name: first[name] for name in ("metric", "value", "low", "high")}, "network": "student"} if first else {}

    def to_frame(self) -> pd.DataFrame:
        """One row for each domain, network and metric on test."""
        rows = [
            {
                "domain": domain.name,
                "network": network,
                **{name: getattr(row, name) for name in ("metric", "value", "low", "high", "num_images", "num_groups")},
            }
            for domain in self.record.domains
            for network, metrics in (("teacher", domain.teacher_metrics), ("student", domain.student_metrics))
            for row in metrics
        ]
        return pd.DataFrame(rows)

    def _most_important(self) -> pd.DataFrame:
        frame = self.to_frame()
        return frame.loc[frame["metric"] == self.record.domains[0].primary_metric]


_SAID_ELSEWHERE = ("steps", "batch_size", "checkpoint_every")


class _Taught(NamedTuple):
    """A teacher with the rows of its run."""

    name: str
    model: SavedModel
    rows: TuningRows

    @property
    def train(self) -> Dataset:
        """What the student learns from: the training rows of the teacher."""
        return self.rows.dataset.take(self.rows.parts[0].train)

    @property
    def test(self) -> Dataset:
        """What neither has learned from."""
        return self.rows.dataset.take(np.sort(self.rows.parts[0].test))


@verb("distil", DistilOptions)
def distil(runs: Sequence[str | Path], options: DistilOptions, call: Run) -> Distilled:
    """Distil fine-tuned networks, each of its own images, into one backbone: URL's universal backbone.

    The student learns to classify the training rows of every run, and, fading to nothing, to look at them as their network
    does. Teacher and student are then measured on the test rows of each run, but for those that another run trained on.

    Args:
        runs: Run directories of ``crossgraft tune``, at least two.
        {options}

    Returns:
        Metrics of student and teachers by domain; with ``out`` also ``universal.safetensors``, which ``model`` of every verb
        takes, ``history.csv``, ``metrics.csv``, ``report.html``, ``report.json`` and ``run.json`` there.

    Raises:
        RunDirectoryError: A run holds no single model (it is not finished, or has folds), or ``out`` is in use.
        DataError: The data are others than those of the runs, have several labels per image, or fewer images than a batch.
        UsageError: An argument is wrong or missing.
        UnknownNameError: There is no such model; the message gives the nearest names.
        MissingWeightsError: Weights are not on this machine.
        DivergedError: The loss is not finite; the last checkpoint stays.

    Cost: per step a forward and a backward pass of ``batch_size`` images per domain; before and after, one pass of each teacher.
    """
    reporter, runs = call.reporter, _listed(runs)
    locations, names = _listed(options.data), None if options.names is None else _listed(options.names)
    if len(runs) < 2:
        raise UsageError(f"Distilling needs at least two runs, and there is {len(runs)}. One network is what tune gives.")
    if names is not None and (len(set(names)) < len(names) or not all(names)):
        raise UsageError(f"Domains need names of their own, got {', '.join(map(repr, names))}.")
    for what, given in (("data", locations), ("names", names)):
        if given is not None and len(given) != len(runs):
            raise UsageError(f"{what} must have one entry per run: {len(runs)} runs, {len(given)} entries.")
    spec = one_model(options, reporter, command="distil")
    device, threads = resolve_device(options.device), options.workers or available_cores()
    code = trusted_code(options.allow_code).and_also(spec.code)
    models = [load_saved_model(run, device=device, allow_code=code) for run in runs]
    names = [str(name) for name in names or [model.facts.trained_on.name for model in models]]
    resolved = {"model": spec.describe(), "teachers": [model.facts.weights_fingerprint for model in models]}
    typed = {
        **configuration(options),
        **resolved,
        "model": getattr(options.model, "typed", str(options.model)),
        "data": [location_of(each) for each in locations],
    }
    with (
        limit_threads(threads),
        reuse_freed_memory(),
        call.directory("-".join(names), typed=typed, resolved=resolved, out=options.out) as directory,
    ):
        taught = [
            _Taught(name, model, _rows(run, location, model, options, reporter))
            for name, run, location, model in zip(names, runs, locations, models, strict=True)
        ]
        for each in taught:  # before hours of training
            _unseen(each, [other for other in taught if other is not each])
        if directory:
            directory.describe_machine(reporter, threads=threads, device=device)
        start = load_as_asked(spec, options, device=device, for_training=True)
        began = time.perf_counter()
        student = _train(start, taught, options, directory, reporter)
        record = _record(start, student, taught, options, reporter, seconds=time.perf_counter() - began)
        return _finish(Distilled(record, student=student), directory, reporter)


def _listed(given: object) -> list[Any]:
    """What stands between commas, or in a sequence."""
    if isinstance(given, str):
        return [each.strip() for each in given.split(",")]
    return [given] if isinstance(given, Path) or not isinstance(given, Sequence) else list(given)


def _rows(
    run: str | Path, location: str | Path | Dataset, model: SavedModel, options: DistilOptions, reporter: Reporter
) -> TuningRows:
    """The rows of one run.

    Raises:
        DataError: These are not the images of the run, or their classes come in another order.
    """
    asked = options_of_run(Path(run))
    if asked.image_root is not None and options.image_root is not None:
        asked = replace(asked, image_root=options.image_root)
    else:
        refuse_root_outside(asked.image_root, run)
    refuse_join_outside(asked.join, run)
    rows = rows_of_run(location, asked, Path(run), reporter, allow_outside=options.allow_outside)
    refuse_other_data(rows.dataset, model, run)
    if list(rows.dataset.class_names) != list(model.facts.class_names):
        raise DataError(
            f"The classes of {rows.dataset.name} are {', '.join(rows.dataset.class_names)}, and those of the run in {run} "
            f"{', '.join(model.facts.class_names)}. Give the same data with the same names and order of classes."
        )
    return rows


def _unseen(taught: _Taught, others: Sequence[_Taught]) -> np.ndarray:
    """Test rows of one run that no other run has as training rows, nor the patient of.

    Raises:
        DataError: There are none.
    """
    seen = seen_elsewhere(taught.test, [other.train for other in others])
    if seen.all():
        raise DataError(
            f"All test images of {taught.name} are training images of another run, or of a patient there, so that nothing is "
            "left to measure on. Use the same split for runs on the same data: --split."
        )
    return np.sort(taught.rows.parts[0].test)[~seen]


def _train(
    start: Backbone, taught: Sequence[_Taught], options: DistilOptions, directory: RunDirectory | None, reporter: Reporter
) -> UniversalBackbone:
    """The student, from the last checkpoint on where there is one."""
    domains = [Domain(each.name, each.train, each.model.classifier) for each in taught]
    title = f"Distilling {len(domains)} networks into {start.name}"
    with reporter.stage(title, total=options.steps, unit="steps") as stage:
        done = 0

        def advance(step: DistilledStep) -> None:
            nonlocal done
            stage.advance(step.step - done)
            done = step.step

        if directory is not None:
            directory.own("checkpoint/")
        return distil_domains(
            start,
            domains,
            narrowed(DistillationSettings, options),
            checkpoint_folder=None if directory is None else directory.path / "checkpoint",
            on_step=advance,
        )


def _record(
    start: Backbone,
    student: UniversalBackbone,
    taught: Sequence[_Taught],
    options: DistilOptions,
    reporter: Reporter,
    *,
    seconds: float,
) -> DistillationRecord:
    most = max(len(each.rows.parts[0].train) for each in taught)
    settings = {name: getattr(options, name) for name in options_of(Distilling)}
    return DistillationRecord(
        model=describe_model(start, "candidate"),
        domains=[
            _domain(
                each,
                [other for other in taught if other is not each],
                student,
                options,
                reporter,
                is_largest=len(each.rows.parts[0].train) == most,
            )
            for each in taught
        ],
        history=summarise(student.history),
        steps=options.steps,
        batch_size=options.batch_size,
        settings={name: float(value) for name, value in settings.items() if name not in _SAID_ELSEWHERE},
        weights_file=WEIGHTS_FILE,
        weights_fingerprint=student.backbone.weights_fingerprint,
        seconds=seconds,
        references=[REFERENCE],
    )


def _domain(
    taught: _Taught,
    others: Sequence[_Taught],
    student: UniversalBackbone,
    options: DistilOptions,
    reporter: Reporter,
    *,
    is_largest: bool,
) -> DistilledDomainRecord:
    """What teacher and student are worth on the test rows of one run that the student has not learned from."""
    facts, dataset, parts = taught.model.facts, taught.rows.dataset, taught.rows.parts[0]
    tested = _unseen(taught, others)
    test = dataset.take(tested)
    record = DistilledDomainRecord(
        name=taught.name,
        images=describe_dataset(replace(dataset, split_method=taught.rows.split_in_words)),
        num_train=len(parts.train),
        num_test=len(tested),
        num_left_out=len(parts.test) - len(tested),
        teacher=facts.model.name,
        teacher_fingerprint=facts.weights_fingerprint,
        weight=options.largest_weight if is_largest else 1.0,
        primary_metric=recorded_task(facts).primary_metric,
        teacher_metrics=metrics_of_teacher(taught.model, test, reporter),
        student_metrics=metrics_of_student(
            student.backbone, student.heads[taught.name], taught.model, test, reporter, cache_dir=options.cache_dir
        ),
    )
    if not options.ledger:
        return record
    measured = [student.backbone.weights_fingerprint, facts.weights_fingerprint]
    came = taught.rows.as_they_came  # an edit shows nobody new
    looks = count_test_look(came, tested, measured, record.student, command="distil", reporter=reporter)
    return record.model_copy(update={"looks": looks})


def _finish(result: Distilled, directory: RunDirectory | None, reporter: Reporter) -> Distilled:
    """The weights first: without them the rest is of no use."""
    if directory is None or result.student is None:
        return result
    directory.own(WEIGHTS_FILE)
    weights = result.student.save(directory.path / WEIGHTS_FILE, overwrite=True)
    tables = {"metrics.csv": result.to_frame(), "history.csv": history_frame(result.student.history)}
    page = publish(directory, result.record, reporter, tables=tables)
    return replace(result, out=directory.path, report=page, weights=weights)
