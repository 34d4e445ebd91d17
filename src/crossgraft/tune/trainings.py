"""Run all trainings, pick, measure once on unseen rows, and write everything down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.data.describe import make_thumbnails
from crossgraft.errors import DataError
from crossgraft.metrics.words import overall
from crossgraft.models.device import explain_lost_device
from crossgraft.progress import Reporter
from crossgraft.records.base import LooksRecord, Thumbnail
from crossgraft.running.jobs import num_read_back, results_of
from crossgraft.running.run_directory import RunDirectory
from crossgraft.running.verb import Publish
from crossgraft.tasks import Task
from crossgraft.tune.assemble import FinishedFold, assemble_record, model_in_memory, prediction_table, save_models
from crossgraft.tune.engine.gradient_norms import GradientNorms
from crossgraft.tune.forecast import MEASURING, METRICS, foresee
from crossgraft.tune.jobs import Trained, TrainingOutcome, TrainingWork, pick, trained_network
from crossgraft.tune.keep_search import run_trainings
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.measuring.drift import Compared, similarity_to_source
from crossgraft.tune.measuring.evaluation import Evaluation, evaluate, evaluate_alone, predict_fold
from crossgraft.tune.pictures import answers_of_folds, pictures_of_answers
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.planning.plan import Plan
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.planning.rows import TuningRows, columns_of
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.result import DOMAIN_MODELS, FOLD_MODELS, FineTuningResult, keep_known_result
from crossgraft.tune.saving.saved_model import MODEL_FOLDER
from crossgraft.tune.tracking import JobProgress, Tracker
from crossgraft.words.formatting import counted


def train_and_evaluate(
    prepared: Preparation, plan: Plan, *, run: RunDirectory | None, tracking: Tracker, publish: Publish, reporter: Reporter
) -> FineTuningResult:
    """Everything after the plan.

    Without ``run`` nothing is written; ``publish`` ends the run and makes its page.

    Raises:
        DataError: No training ended with a model.
        CrossgraftError: The only training failed.
    """
    if run is not None:
        run.own("jobs/", f"{MODEL_FOLDER}/", "folds/")
    tracking.begin(f"{prepared.request.spec.name} on {prepared.rows.dataset.name}", plan.record.settings)
    failed = True
    try:
        with limit_threads(prepared.num_threads), reuse_freed_memory(), explain_lost_device(prepared.settings.device):
            progress = JobProgress(
                reporter,
                tracking,
                rule=prepared.rule,
                num_jobs=plan.record.num_jobs,
                keep=prepared.keep,
                adapts=prepared.batch_norm.mode == "adapt",
            )
            foresee(prepared, plan.record, run=run, reporter=reporter)
            outcomes = _run_jobs(prepared, plan.record.num_jobs, run, progress, reporter)
            done = [(networks, trained) for networks, of_fold in outcomes if (trained := results_of(of_fold))]
            if not done:
                raise DataError(f"No training ended with a model. The first one: {outcomes[0][1][0].reason}")
            with reporter.part(MEASURING):
                finished = [_finish_fold(prepared, networks, of_fold, reporter) for networks, of_fold in done]
                similarity = _similarity(prepared, finished, reporter)
        with reporter.part(METRICS):
            evaluation, of_folds = _evaluation(prepared, finished), _of_folds(prepared, finished)
        record = assemble_record(
            prepared,
            plan.record,
            [outcome for _, of_fold in outcomes for outcome in of_fold],
            [fold.trained for fold in finished],
            evaluation,
            of_folds=of_folds,
            similarity=similarity,
            predictions=[fold.predictions for fold in finished],
        )
        if prepared.options.ledger:
            record = record.model_copy(update={"looks": _count_look(prepared, record, finished, reporter)})
        tuned = FineTuningResult(record, plan=plan, norms=_gradient_norms(outcomes))
        if not of_folds:
            (fold,) = finished
            tuned = replace(tuned, classifier=fold.classifier, fitted=model_in_memory(prepared, record, fold))
        if run is not None:
            tuned = _write(prepared, tuned, finished, of_folds, run, publish, reporter)
        if prepared.options.store:
            _keep_result(prepared, tuned.record, num_done=len(finished), reporter=reporter)
        unseen = [row for row in overall(evaluation.metrics) if row.split == evaluation.split]
        tracking.log({row.metric: row.value for row in unseen if row.value is not None}, step=0)
        failed = False
    finally:
        tracking.end(failed=failed)
    return tuned


def _run_jobs(
    prepared: Preparation, num_jobs: int, run: RunDirectory | None, progress: JobProgress, reporter: Reporter
) -> list[tuple[FoldNetworks, list[TrainingOutcome]]]:
    """Networks and outcomes of each fold; the only training raises its error, one of several becomes a row with a reason."""

    def tell(outcome: TrainingOutcome) -> None:
        if outcome.reason:
            reporter.warn(f"The training {outcome.job.name} failed and is left out: {outcome.reason}")

    outcomes: list[tuple[FoldNetworks, list[TrainingOutcome]]] = []
    for parts in prepared.rows.parts:
        work = TrainingWork(prepared.for_parts(parts), prepared.fold_data(parts), run, progress)
        outcomes.append((work.data.networks, run_trainings(work, keep_going=num_jobs > 1, told=tell)))
    if before := sum(num_read_back(of_fold) for _, of_fold in outcomes):
        made = sum(len(of_fold) for _, of_fold in outcomes)
        reporter.say(f"{before} of {made} trainings were done before.")
    return outcomes


def _gradient_norms(outcomes: Sequence[tuple[FoldNetworks, list[TrainingOutcome]]]) -> dict[str, GradientNorms]:
    """Those of every training that logged them, by its name."""
    trained = [each for _, of_fold in outcomes for each in results_of(of_fold)]
    return {each.training.name: each.gradient_norms for each in trained if each.gradient_norms is not None}


def _finish_fold(prepared: Preparation, networks: FoldNetworks, trained: Sequence[Trained], reporter: Reporter) -> FinishedFold:
    """Pick a model by the validation rows; only then look at the test rows."""
    parts = next(parts for parts in prepared.rows.parts if parts.fold == trained[0].training.fold)
    chosen = pick(trained, prepared.for_parts(parts).rule, prepared.keep)
    classifier = trained_network(prepared.new_classifier(), chosen)
    with reporter.stage(f"Looking at the {len(parts.test)} test images{parts.where}"):
        predictions = predict_fold(
            classifier,
            prepared.rows.dataset,
            parts,
            task=prepared.task,
            threshold_rule=prepared.options.threshold_rule,
            device=prepared.settings.device,
            num_threads=prepared.num_threads,
        )
    return FinishedFold(chosen, networks, predictions, classifier.to("cpu").eval())


def _similarity(prepared: Preparation, finished: Sequence[FinishedFold], reporter: Reporter) -> dict[str, float]:
    """Similarity of features before and after, on the test rows."""
    with reporter.stage("Comparing features before and after"):
        compared = [
            Compared(
                fold.classifier,
                fold.predictions.parts.test,
                fold.networks.pretrained(),
                fold.networks.adapted() if prepared.moves_features else None,
            )
            for fold in finished
        ]
        return similarity_to_source(
            compared, prepared.rows.dataset, device=prepared.settings.device, num_threads=prepared.num_threads
        )


def _evaluation(prepared: Preparation, finished: Sequence[FinishedFold]) -> Evaluation:
    dataset, is_folded = prepared.rows.dataset, prepared.rows.has_several_models
    attributes = columns_of(dataset, prepared.options.subgroups)
    folds = [fold.predictions for fold in finished]
    return evaluate(folds, dataset, task=prepared.task, attributes=attributes, is_folded=is_folded)


def _of_folds(prepared: Preparation, finished: Sequence[FinishedFold]) -> dict[int, Evaluation]:
    """Each fold alone; empty without folds."""
    dataset, task = prepared.rows.dataset, prepared.task
    folds = [] if not prepared.rows.has_several_models else [fold.predictions for fold in finished]
    return {fold.parts.fold or 0: evaluate_alone(fold, dataset, task=task) for fold in folds}


def _count_look(
    prepared: Preparation, record: TuningRecord, finished: Sequence[FinishedFold], reporter: Reporter
) -> LooksRecord | None:
    """Add this look at the test rows to the ledger; the same training is the same look."""
    return count_test_look(
        prepared.rows.as_they_came,  # an edit shows nobody new
        np.concatenate([fold.predictions.parts.test for fold in finished]),
        sorted(fold.trained.record.key for fold in finished),
        record.metric(record.primary_metric),
        command="tune",
        reporter=reporter,
    )


def _write(
    prepared: Preparation,
    tuned: FineTuningResult,
    finished: Sequence[FinishedFold],
    of_folds: Mapping[int, Evaluation],
    run: RunDirectory,
    publish: Publish,
    reporter: Reporter,
) -> FineTuningResult:
    """Models, tables, record; then the run is done, and its page follows."""
    options, rows = prepared.options, prepared.rows
    save_models(prepared, tuned.record, finished, of_folds, run)
    several = FOLD_MODELS if rows.left_out is None else DOMAIN_MODELS
    where = {"saved_model_reason": several} if of_folds else {"saved_model": MODEL_FOLDER}
    record = tuned.record.model_copy(update=where)
    table = prediction_table([fold.predictions for fold in finished], prepared, show_names=options.show_names)
    page = publish(
        run,
        record,
        reporter,
        tables={**tuned.tables(), "predictions.csv": table},
        split=rows.split_record(),
        thumbnails=None if options.no_images else lambda: _thumbnails(record, rows, finished, prepared.task),
    )
    return replace(tuned, found=record, out=run.path, report=page)


def _thumbnails(record: TuningRecord, rows: TuningRows, finished: Sequence[FinishedFold], task: Task) -> list[Thumbnail]:
    """Examples of each class to learn from, and the images that were answered."""
    mistakes = [] if record.mistakes is None else record.mistakes.most_certain
    answers = answers_of_folds([fold.predictions for fold in finished], rows.dataset, task=task)
    examples = make_thumbnails(rows.dataset.take(rows.parts[0].train))
    return [*examples, *pictures_of_answers(answers, rows.dataset, needed=[mistake.row for mistake in mistakes])]


def _keep_result(prepared: Preparation, record: TuningRecord, *, num_done: int, reporter: Reporter) -> None:
    """As a known result; one of some folds is none of the data set."""
    num_folds = len(prepared.rows.parts)
    if num_done < num_folds:
        what = "fold" if prepared.rows.left_out is None else "training"
        reporter.warn(
            f"{num_folds - num_done} of {counted(num_folds, what)} left no model, so the numbers are of the other images "
            "only and nothing was added to the known results."
        )
    else:
        keep_known_result(record, prepared.request.spec, prepared.rows, prepared.options, reporter)
