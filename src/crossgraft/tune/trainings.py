"""Run all trainings, pick, measure once on unseen rows, and write everything down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crossgraft.compute import limit_threads, reuse_freed_memory
from crossgraft.data import Split
from crossgraft.data.describe import make_thumbnails
from crossgraft.errors import DataError
from crossgraft.metrics.words import overall
from crossgraft.models.device import explain_lost_device
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.progress import Reporter
from crossgraft.records.base import LooksRecord, Thumbnail
from crossgraft.running.command_line import portable_name
from crossgraft.running.jobs import num_read_back, results_of
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tasks import Task
from crossgraft.tune.assemble import FinishedFold, assemble_record, prediction_table
from crossgraft.tune.forecast import MEASURING, METRICS, foresee
from crossgraft.tune.jobs import TrainingOutcome, TrainingWork, pick, trained_network
from crossgraft.tune.keep_search import run_trainings
from crossgraft.tune.looks import count_test_look, fingerprint_of_tested
from crossgraft.tune.measuring.drift import Compared, similarity_to_source
from crossgraft.tune.measuring.evaluation import Evaluation, evaluate, evaluate_alone, predict_fold
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.pictures import answers_of_folds, pictures_of_answers
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.planning.leave_out import with_split
from crossgraft.tune.planning.plan import Plan
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.planning.rows import TuningRows, columns_of
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.result import DOMAIN_MODELS, FOLD_MODELS, FineTuningResult, keep_known_result
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import IMAGES_FILE, MODEL_FOLDER, SavedModel
from crossgraft.tune.tracking import JobProgress, Tracker
from crossgraft.words.formatting import counted


def train_and_evaluate(
    prepared: Preparation, plan: Plan, *, run: RunDirectory | None, tracking: Tracker, reporter: Reporter
) -> FineTuningResult:
    """Everything after the plan; without ``run`` nothing is written.

    Raises:
        DataError: No training ended with a model.
        CrossgraftError: The only training failed.
    """
    if run is not None:
        run.own("jobs/", f"{MODEL_FOLDER}/", "folds/")
    with tracking.run(f"{prepared.request.spec.name} on {prepared.rows.dataset.name}", plan.record.settings):
        with limit_threads(prepared.num_threads), reuse_freed_memory(), explain_lost_device(prepared.settings.device):
            foresee(prepared, plan.record, run=run, reporter=reporter)
            of_folds = _train(prepared, plan.record.num_jobs, run, tracking, reporter)
            with reporter.part(MEASURING):
                finished = [_finish(prepared, *each, reporter) for each in of_folds if results_of(each[1])]
                similarity = _similarity(prepared, finished, reporter)
        with reporter.part(METRICS):
            evaluation, alone = _evaluate(prepared, finished)
        outcomes = [outcome for _, of_fold in of_folds for outcome in of_fold]
        record = assemble_record(prepared, plan.record, outcomes, finished, evaluation, of_folds=alone, similarity=similarity)
        if prepared.options.ledger:
            record = record.model_copy(update={"looks": _count_look(prepared, record, finished, reporter)})
        norms = {each.training.name: each.gradient_norms for each in results_of(outcomes) if each.gradient_norms is not None}
        tuned = FineTuningResult(record, plan=plan, norms=norms)
        if not alone:
            (fold,) = finished
            tuned = replace(tuned, classifier=fold.classifier, fitted=_model_in_memory(prepared, record, fold))
        if run is not None:
            tuned = _write(prepared, tuned, finished, alone, run, reporter)
        if prepared.options.store:
            _keep_result(prepared, tuned.record, num_done=len(finished), reporter=reporter)
        unseen = [row for row in overall(evaluation.metrics) if row.split == evaluation.split]
        tracking.log({row.metric: row.value for row in unseen if row.value is not None}, step=0)
    return tuned


def _train(
    prepared: Preparation, num_jobs: int, run: RunDirectory | None, tracking: Tracker, reporter: Reporter
) -> list[tuple[FoldNetworks, list[TrainingOutcome]]]:
    """Networks and outcomes of each fold; the only training raises its error, one of several becomes a row with a reason.

    Raises:
        DataError: None of them ended with a model.
    """

    def tell(outcome: TrainingOutcome) -> None:
        if outcome.reason:
            reporter.warn(f"The training {outcome.job.name} failed and is left out: {outcome.reason}")

    adapts = prepared.batch_norm.mode == "adapt"
    progress = JobProgress(reporter, tracking, rule=prepared.rule, num_jobs=num_jobs, keep=prepared.keep, adapts=adapts)
    of_folds: list[tuple[FoldNetworks, list[TrainingOutcome]]] = []
    for parts in prepared.rows.parts:
        work = TrainingWork(prepared.for_parts(parts), prepared.fold_data(parts), run, progress)
        of_folds.append((work.data.networks, run_trainings(work, keep_going=num_jobs > 1, told=tell)))
    if before := sum(num_read_back(outcomes) for _, outcomes in of_folds):
        made = sum(len(outcomes) for _, outcomes in of_folds)
        reporter.say(f"{before} of {made} trainings were done before.")
    if not any(results_of(outcomes) for _, outcomes in of_folds):
        raise DataError(f"No training ended with a model. The first one: {of_folds[0][1][0].reason}")
    return of_folds


def _finish(
    prepared: Preparation, networks: FoldNetworks, outcomes: Sequence[TrainingOutcome], reporter: Reporter
) -> FinishedFold:
    """Pick a model by the validation rows; only then look at the test rows."""
    trained = results_of(outcomes)
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


def _evaluate(prepared: Preparation, finished: Sequence[FinishedFold]) -> tuple[Evaluation, dict[int, Evaluation]]:
    """All folds together, and each alone; the second is empty without folds."""
    rows, task, folds = prepared.rows, prepared.task, [fold.predictions for fold in finished]
    attributes = columns_of(rows.dataset, prepared.options.subgroups)
    together = evaluate(folds, rows.dataset, task=task, attributes=attributes, is_folded=rows.has_several_models)
    alone = folds if rows.has_several_models else []
    return together, {fold.parts.fold or 0: evaluate_alone(fold, rows.dataset, task=task) for fold in alone}


def _count_look(
    prepared: Preparation, record: TuningRecord, finished: Sequence[FinishedFold], reporter: Reporter
) -> LooksRecord | None:
    """Add this look at the test rows to the ledger; the same training is the same look."""
    return count_test_look(
        prepared.rows.as_they_came,  # an edit shows nobody new
        np.concatenate([fold.parts.test for fold in finished]),
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
    reporter: Reporter,
) -> FineTuningResult:
    """Models, tables, record; then the run is done, and its page follows."""
    options, rows = prepared.options, prepared.rows
    _save_models(prepared, tuned.record, finished, of_folds, run)
    several = FOLD_MODELS if rows.left_out is None else DOMAIN_MODELS
    where = {"saved_model_reason": several} if of_folds else {"saved_model": MODEL_FOLDER}
    record = tuned.record.model_copy(update=where)
    table = prediction_table(finished, prepared, show_names=options.show_names)
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


def _save_models(
    prepared: Preparation,
    record: TuningRecord,
    finished: Sequence[FinishedFold],
    of_folds: Mapping[int, Evaluation],
    run: RunDirectory,
) -> None:
    """The model as ``model``; with folds one per fold, because the metrics are of all of them and of none alone."""
    for fold in finished:
        parts = fold.parts
        folder = f"folds/{portable_name(parts.name)}/" if of_folds else ""
        own = record
        if of_folds:  # the numbers of one fold, for its own model
            alone = of_folds[parts.fold or 0]
            update = {name: getattr(alone, name) for name in ("metrics", "calibration", "calibration_reason", "thresholds")}
            own = record.model_copy(update=update)
        save_model(run.path / folder / MODEL_FOLDER, fold.classifier, _facts(prepared, own, fold), overwrite=True)
        digests = sorted(_known_images(prepared, parts))  # an order that says nothing
        run.write(f"{folder}{IMAGES_FILE}", json.dumps(digests))
        if of_folds and prepared.rows.left_out is not None:
            split = with_split(prepared.rows.dataset, parts, prepared.rows.origins).split
            if isinstance(split, Split):
                run.write_record(f"{folder}split.json", split)


def _model_in_memory(prepared: Preparation, record: TuningRecord, fold: FinishedFold) -> SavedModel:
    """The model as it would be read back."""
    own = {"weights_fingerprint": weights_fingerprint(fold.classifier)}
    facts = _facts(prepared, record, fold).model_copy(update=own)
    known, split = _known_images(prepared, fold.parts), prepared.rows.split_record()
    return SavedModel(fold.classifier, facts, "cpu", frozenset(known), split)


def _facts(prepared: Preparation, record: TuningRecord, fold: FinishedFold) -> SavedModelRecord:
    options = prepared.options
    return describe_saved_model(
        record,
        fold.classifier,
        seed=options.seed,
        training_key=fold.trained.record.key,
        test_fingerprint=fingerprint_of_tested(prepared.rows.as_they_came, fold.parts.test),
        window=options.window,
        slices=options.slices,
    )


def _known_images(prepared: Preparation, parts: FoldRows) -> set[str]:
    """Digests of the images that had a part in the fine-tuning; of edited ones also as they came."""
    rows = prepared.rows
    of_both = [rows.dataset.image_digests, *([] if rows.unedited is None else [rows.unedited.image_digests])]
    return {digests[row].hex() for digests in of_both for row in (*parts.train, *parts.val)}
