"""Run all trainings, pick, measure once on unseen rows, and write everything down."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.data.describe import make_thumbnails
from crossgraft.errors import DataError
from crossgraft.models.classifier import Classifier
from crossgraft.options import TuneOptions
from crossgraft.progress import Reporter
from crossgraft.records import MetricRecord, SavedModelRecord, TuningRecord
from crossgraft.runs import Publish, RunDirectory
from crossgraft.runs.jobs import num_read_back, results_of, run_jobs
from crossgraft.tune.assemble import assemble_record, record_of_fold
from crossgraft.tune.job_progress import JobProgress
from crossgraft.tune.jobs import Trained, TrainingOutcome
from crossgraft.tune.measuring.drift import similarity_to_source
from crossgraft.tune.measuring.evaluation import FoldPredictions, evaluate, evaluate_alone, predict_fold
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.picking import pick, trained_network, work_of
from crossgraft.tune.planning.first_adapter import start_of_adapters
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.planning.rows import columns_of
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.result_rows import keep_known_result
from crossgraft.tune.saving.prediction_table import prediction_table
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import IMAGES_FILE, MODEL_FOLDER
from crossgraft.tune.tracking import Tracker
from crossgraft.words.formatting import counted

FOLD_MODELS = (
    "with folds there is one model a fold, in folds/fold-0/model and so on; for one model of all images, run again "
    "without --folds"
)


@dataclass(frozen=True, eq=False)
class _Finished:
    """A fold whose model was picked and measured."""

    trained: Trained
    predictions: FoldPredictions
    classifier: Classifier


def train_and_evaluate(
    prepared: Preparation,
    *,
    run: RunDirectory | None,
    tracking: Tracker,
    publish: Publish,
    reporter: Reporter,
) -> FineTuningResult:
    """Everything after the plan.

    Args:
        prepared: What the trainings start from.
        run: Run directory, or None: then nothing is written.
        tracking: Tracker that logs every epoch.
        publish: Ends the run and makes its page.
        reporter: Where progress goes.

    Raises:
        DataError: No training ended with a model.
        CrossgraftError: The only training failed.
    """
    attributes = columns_of(prepared.rows.dataset, prepared.request.options.subgroups)
    if run is not None and not run.resumed:
        for folder in ("jobs", MODEL_FOLDER, "folds"):  # of a run that --overwrite has replaced
            shutil.rmtree(run.path / folder, ignore_errors=True)
    tracking.begin(f"{prepared.request.spec.name} on {prepared.rows.dataset.name}", prepared.plan.record.settings)
    failed = True
    try:
        with limit_threads(prepared.num_threads), reuse_freed_memory():
            outcomes = _run_jobs(prepared, run=run, tracking=tracking, reporter=reporter)
            done = [trained for of_fold in outcomes if (trained := results_of(of_fold))]
            if not done:
                raise DataError(f"No training ended with a model. The first one: {outcomes[0][0].reason}")
            finished = [_finish_fold(prepared, of_fold, reporter) for of_fold in done]
            similarity = _similarity(prepared, finished, reporter)
        record = _record(prepared, outcomes, finished, attributes)
        record = record.model_copy(update={"similarity": similarity})
        tuned = _write(prepared, record, finished, run, publish, reporter)
        if prepared.request.options.store:
            _keep_result(prepared, record, finished, reporter)
        tracking.log({row.metric: row.value for row in _overall(record) if row.value is not None}, step=0)
        failed = False
    finally:
        tracking.end(failed=failed)
    return tuned


def _run_jobs(
    prepared: Preparation, *, run: RunDirectory | None, tracking: Tracker, reporter: Reporter
) -> list[list[TrainingOutcome]]:
    """Outcomes of each fold; the only training raises its error, one of several becomes a row with a reason."""
    request, num_jobs = prepared.request, prepared.plan.record.num_jobs
    progress = JobProgress(reporter, tracking, rule=prepared.rule, num_jobs=num_jobs)
    facts = {"model": request.spec.describe(), "seed": request.options.seed, **start_of_adapters(request.adapter)}

    def tell(outcome: TrainingOutcome) -> None:
        if outcome.reason:
            reporter.warn(f"The training {outcome.job.name} failed and is left out: {outcome.reason}")

    outcomes: list[list[TrainingOutcome]] = []
    for parts in prepared.rows.parts:
        work = replace(work_of(prepared, prepared.fold_data(parts)), run=run, facts=facts, progress=progress)
        jobs = [work.job(point) for point in request.points]
        outcomes.append(run_jobs(jobs, work, keep_going=num_jobs > 1, told=tell))
    if before := sum(map(num_read_back, outcomes)):
        reporter.say(f"{before} of {num_jobs} trainings were done before.")
    return outcomes


def _finish_fold(prepared: Preparation, trained: Sequence[Trained], reporter: Reporter) -> _Finished:
    """Pick a model by the validation rows; only then look at the test rows."""
    chosen = pick(trained, prepared.rule)
    classifier = trained_network(prepared.new_classifier(), chosen)
    parts = next(parts for parts in prepared.rows.parts if parts.fold == chosen.training.fold)
    where = "" if parts.fold is None else f" of fold {parts.fold}"
    with reporter.stage(f"Looking at the {len(parts.test)} test images{where}"):
        predictions = predict_fold(
            classifier,
            prepared.rows.dataset,
            parts,
            task=prepared.task,
            threshold_rule=prepared.request.options.threshold_rule,
            device=prepared.settings.device,
            num_threads=prepared.num_threads,
        )
    return _Finished(chosen, predictions, classifier.to("cpu").eval())


def _similarity(prepared: Preparation, finished: Sequence[_Finished], reporter: Reporter) -> dict[str, float]:
    """Similarity of features before and after, on the test rows."""
    tuned = [(fold.classifier, fold.predictions.parts.test) for fold in finished]
    with reporter.stage("Comparing features before and after"):
        return similarity_to_source(
            prepared.pretrained(),
            tuned,
            prepared.rows.dataset,
            device=prepared.settings.device,
            num_threads=prepared.num_threads,
        )


def _record(
    prepared: Preparation,
    outcomes: Sequence[Sequence[TrainingOutcome]],
    finished: Sequence[_Finished],
    attributes: dict[str, np.ndarray],
) -> TuningRecord:
    dataset, task = prepared.rows.dataset, prepared.task
    is_folded = prepared.rows.num_folds is not None
    folds = [fold.predictions for fold in finished]
    evaluation = evaluate(folds, dataset, task=task, attributes=attributes, is_folded=is_folded)
    return assemble_record(
        prepared,
        [outcome for of_fold in outcomes for outcome in of_fold],
        [fold.trained for fold in finished],
        evaluation,
        of_folds={fold.parts.fold or 0: evaluate_alone(fold, dataset, task=task) for fold in folds}
        if is_folded
        else {},
    )


def _overall(record: TuningRecord) -> list[MetricRecord]:
    first = record.metrics[0].split
    return [row for row in record.metrics if row.class_name is None and row.attribute is None and row.split == first]


def _write(
    prepared: Preparation,
    record: TuningRecord,
    finished: Sequence[_Finished],
    run: RunDirectory | None,
    publish: Publish,
    reporter: Reporter,
) -> FineTuningResult:
    """Models, tables, record; then the run is done, and its page follows."""
    is_folded, options = prepared.rows.num_folds is not None, prepared.request.options
    classifier = None if is_folded else finished[0].classifier
    if run is None:
        return FineTuningResult(record, plan=prepared.plan, classifier=classifier)
    record = _save_models(prepared, record, finished, run)
    run.update(weights_fingerprints={record.model.name: record.model.weights_fingerprint})
    tuned = FineTuningResult(record, plan=prepared.plan, classifier=classifier)
    table = prediction_table([fold.predictions for fold in finished], prepared, show_names=options.show_names)
    images = prepared.rows.dataset.take(prepared.rows.parts[0].train)
    page = publish(
        run,
        record,
        reporter,
        tables={"history.csv": tuned.history(), "metrics.csv": tuned.to_frame(), "predictions.csv": table},
        split=prepared.rows.split_record(),
        thumbnails=None if options.no_images else lambda: make_thumbnails(images),
    )
    return replace(tuned, out=run.path, report=page)


def _keep_result(
    prepared: Preparation,
    record: TuningRecord,
    finished: Sequence[_Finished],
    reporter: Reporter,
) -> None:
    """As a known result; one of some folds is none of the data set."""
    missing = len(prepared.rows.parts) - len(finished)
    if missing:
        reporter.warn(
            f"{missing} of {counted(len(prepared.rows.parts), 'fold')} left no model, so the numbers are of the other images "
            "only and nothing was added to the known results."
        )
    else:
        keep_known_result(record, prepared.request.spec, prepared.rows, prepared.request.options, reporter)


def _save_models(
    prepared: Preparation,
    record: TuningRecord,
    finished: Sequence[_Finished],
    run: RunDirectory,
) -> TuningRecord:
    """The model as ``model``; with folds one per fold, because the metrics are of all of them and of none alone."""
    if prepared.rows.num_folds is None:
        record = record.model_copy(update={"saved_model": MODEL_FOLDER})
        classifier = finished[0].classifier
        save_model(run.path / MODEL_FOLDER, classifier, _facts(record, classifier, prepared.request.options))
        run.write(IMAGES_FILE, _known_images(prepared, finished[0].predictions.parts))
        return record
    for fold in finished:
        parts, classifier = fold.predictions.parts, fold.classifier
        alone = evaluate_alone(fold.predictions, prepared.rows.dataset, task=prepared.task)
        of_fold = record_of_fold(record, alone)
        folder = run.path / "folds" / parts.name / MODEL_FOLDER
        save_model(folder, classifier, _facts(of_fold, classifier, prepared.request.options))
        run.write(f"folds/{parts.name}/{IMAGES_FILE}", _known_images(prepared, parts))
    return record.model_copy(update={"saved_model_reason": FOLD_MODELS})


def _known_images(prepared: Preparation, parts: FoldRows) -> str:
    """Digests of the images that had a part in the fine-tuning, in an order that says nothing."""
    digests = prepared.rows.dataset.image_digests
    return json.dumps(sorted({digests[row].hex() for row in (*parts.train, *parts.val)}))


def _facts(record: TuningRecord, classifier: Classifier, options: TuneOptions) -> SavedModelRecord:
    """What is saved beside the weights."""
    return describe_saved_model(record, classifier, seed=options.seed, window=options.window, slices=options.slices)
