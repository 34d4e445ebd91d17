"""``predict``: what a fine-tuned model says about images."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crossgraft.compute import available_cores, limit_threads, reuse_freed_memory
from crossgraft.data.describe import describe_files_of
from crossgraft.data.given_images import location_of, open_images
from crossgraft.data.opening import part_of_run
from crossgraft.data.rows import ImageRows
from crossgraft.edit.words import predicted_unedited
from crossgraft.errors import DataError, UsageError
from crossgraft.options._option import configuration
from crossgraft.predict.dicom_sr import refuse_folder, require_writer, sources_of, write_reports
from crossgraft.predict.options import PredictOptions
from crossgraft.predict.predicted import finish, refuse_to_lose, rows_of, totals_of, with_look
from crossgraft.progress import Reporter
from crossgraft.running.verb import Run, verb
from crossgraft.tasks import recorded_task
from crossgraft.tune.known_targets import KnownTargets, are_its_test_images, is_of_run, measure, seen_in_training, true_classes
from crossgraft.tune.measuring.logits import BATCH_SIZE, compute_logits, foresee_logits
from crossgraft.tune.predictions import Predictions
from crossgraft.tune.record import PredictionRecord, PredictionRow
from crossgraft.tune.result import ModelResult
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.tune.saving.saved_model import Answers, SavedModel, answer, load_saved_model

if TYPE_CHECKING:
    from crossgraft.data.given_images import Images


@verb("predict", PredictOptions)
def predict(run: str | Path | SavedModel | ModelResult[Any], images: Images, options: PredictOptions, call: Run) -> Predictions:
    """Predict the class of each image, with a calibrated probability and the decision at the stored threshold.

    Images are prepared as in training. Where their true classes are known (folders, or a column of labels, with names of
    the model's classes), metrics with intervals are measured as well, and the look at these images is counted.

    Args:
        run: Run directory of ``crossgraft tune``, the folder ``model`` of one, what ``fine_tune`` returned, or a model from
            ``load_saved_model``.
        images: An image file, a list of them, a folder, a table (file or DataFrame) with a column of paths, an ``.npz`` file,
            what else ``open_dataset`` takes, an open ``Dataset``, images of Pillow, or arrays (height, width) or (height,
            width, 1 or 3) of type uint8, uint16 or float in [0, 1]. Labels may be missing.
        {options}

    Returns:
        The predictions; with ``dicom_sr`` also a DICOM structured report for each study there; with ``out`` also
        ``predictions.csv``, ``report.html``, ``report.json``, ``run.json`` and ``predicted_images.json`` (a digest of each image,
        so that a later call loses none) there.

    Raises:
        RunDirectoryError: ``run`` holds no model, or ``out`` is in use or holds another run, or predictions of other images.
        WeightsMismatchError: The weights of the model are damaged or changed.
        MissingExtraError: ``dicom_sr`` is given, and highdicom is not installed.
        DataError: There are no images, a table is damaged, or there are no rows of ``use_split``: neither the data have such a
            split, nor do they fit the one of the fine-tuning; or
            ``dicom_sr`` is given, and an image is not of DICOM or lacks the UIDs by which a report refers to it.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        UsageError: An argument is wrong or contradicts another.

    Cost: one forward pass per image; about 50 images a second for a MobileNet at 224 pixels on two cores.
    """
    reporter, threads = call.reporter, available_cores() if options.workers is None else options.workers
    size = BATCH_SIZE if options.batch_size is None else options.batch_size
    reports = None if options.dicom_sr is None else Path(options.dicom_sr)
    if reports is not None:
        require_writer()
        refuse_folder(reports, overwrite=options.overwrite)
    if threads < 1 or size < 1:
        raise UsageError(f"Threads and batch size must be at least 1, found {threads} and {size}.")
    with limit_threads(threads), reuse_freed_memory():
        model = run.model if isinstance(run, ModelResult) else run
        if isinstance(images, Iterator):
            images = list(images)
        if not isinstance(model, SavedModel):
            model = load_saved_model(model, device=options.device, allow_code=options.allow_code)
        with call.directory(
            location_of(images),
            typed=configuration(options),
            resolved={"model": model.facts.weights_fingerprint, "batch_size": size},
            out=options.out,
        ) as directory:
            opened = _open(images, model, options, num_threads=threads, reporter=reporter)
            sources = {} if reports is None else sources_of(opened)
            readable = opened.readable()
            if directory:
                refuse_to_lose(directory, readable)
                directory.update(data_fingerprint=readable.fingerprint)
            seen = seen_in_training(readable, model)
            known = true_classes(
                readable,
                model.facts,
                reporter,
                seen=seen,
                has_test=seen.sentence is not None and _has_test(opened, model, options.use_split),
            )
            known = _with_edits(known, model.facts, reporter)
            foresee_logits(model.classifier, readable, batch_size=size, reporter=reporter)
            start = time.perf_counter()
            logits = compute_logits(model.classifier, readable, batch_size=size, reporter=reporter)
            seconds = time.perf_counter() - start
            answers = answer(model.facts, logits)
            rows = rows_of(opened, logits, answers, known, seen)
            record = _record(model, opened, rows, known, answers, seconds)
            record = record.model_copy(update={"num_seen": seen.number, "is_of_run": is_of_run(readable, model, seen)})
            if options.ledger:
                measured = [model.facts.look_key]
                if are_its_test_images(readable, model):  # one of them may have been seen, too
                    known = known._replace(measured=np.arange(len(readable)), unseen=True)
                record = with_look(record, readable, known, measured, reporter)
            predictions = finish(record, opened, directory, reporter, no_images=options.no_images, show_names=options.show_names)
            if reports is None:
                return predictions
            write_reports(record, sources, reports)
            return replace(predictions, dicom_sr=reports)


def _open(images: Images, model: SavedModel, options: PredictOptions, *, num_threads: int, reporter: Reporter) -> ImageRows:
    facts = model.facts
    return open_images(
        images,
        options,
        reporter,
        known_classes=facts.class_names,
        several_labels=not recorded_task(facts).partitions,
        default_window=facts.trained_on.window,
        default_slices=facts.trained_on.slices,
        num_threads=num_threads,
        find_split=model.find_split,
    )


def _has_test(images: ImageRows, model: SavedModel, used: str | None) -> bool:
    """Whether ``use_split="test"`` would find rows: by the split of the data, or by that of the fine-tuning."""
    if used is not None:  # these are a part of what was split
        split = model.find_split()
        return used != "test" and split is not None and len(split.rows("test")) > 0
    if images.splits is not None:
        return "test" in images.splits
    try:
        return part_of_run(images, "test", model.find_split())[0].size > 0
    except DataError:
        return False


def _with_edits(known: KnownTargets, facts: SavedModelRecord, reporter: Reporter) -> KnownTargets:
    """With a warning where the model learned from edited images: nothing is edited here."""
    text = predicted_unedited(facts.trained_on.edits)
    if text is None:
        return known
    reporter.warn(text)
    return known._replace(warnings=(*known.warnings, text))


def _record(
    model: SavedModel, images: ImageRows, rows: list[PredictionRow], known: KnownTargets, answers: Answers, seconds: float
) -> PredictionRecord:
    facts = model.facts
    return PredictionRecord(
        model=facts.model,
        model_trained_on=facts.trained_on.name,
        model_fingerprint=facts.weights_fingerprint,
        task=facts.task,
        class_names=facts.class_names,
        data_name=images.name,
        num_images=len(images.readable_rows),
        num_unreadable=len(images.unreadable),
        files=describe_files_of(images),
        rows_used=images.rows_used,
        temperature=facts.temperature,
        thresholds=facts.thresholds,
        rows=rows,
        **totals_of(images, rows, answers, facts.class_names),
        metrics=measure(answers.probabilities, known, facts, images.readable().groups),
        training_metrics=facts.metrics,
        images_per_second=len(images.readable_rows) / max(seconds, 1e-9),
        seconds=seconds,
        warnings=list(known.warnings),
        notes=list(images.reading),
        references=facts.references,
    )
