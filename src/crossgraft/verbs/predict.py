"""``predict``: what a fine-tuned model says about images."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from crossgraft.compute import available_cores, limit_threads, reuse_freed_memory
from crossgraft.data.dataset import Dataset
from crossgraft.data.listing import given_kind, location_text
from crossgraft.data.rows import ImageRows
from crossgraft.data.thumbnails import thumbnail_png
from crossgraft.data.unlabelled import images_of_arrays, open_images
from crossgraft.errors import UsageError
from crossgraft.options import PredictOptions, configuration, options_of
from crossgraft.options.predicting import ImageOptions
from crossgraft.progress import Reporter
from crossgraft.records import PredictionRecord, PredictionRow, Thumbnail
from crossgraft.runs import RunDirectory
from crossgraft.tasks import recorded_task
from crossgraft.tune.known_targets import KnownTargets, measure, true_classes
from crossgraft.tune.logits import BATCH_SIZE, compute_logits, foresee_logits
from crossgraft.tune.predictions import UNREADABLE, Predictions
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.saving.inference import Answers, answer, in_words
from crossgraft.tune.saving.saved_model import SavedModel, load_saved_model
from crossgraft.verbs._verb import Run, verb
from crossgraft.verbs.publish import publish

if TYPE_CHECKING:
    import pandas as pd
    from PIL.Image import Image as Picture

    Files = str | Path | Sequence[str | Path] | pd.DataFrame
    Images = Files | Iterator[str | Path] | Dataset | Sequence[np.ndarray] | np.ndarray | Sequence[Picture]

_SHOWN = 12  # images of each end in the report


@verb("predict", PredictOptions)
def predict(
    run: str | Path | SavedModel | FineTuningResult, images: Images, options: PredictOptions, call: Run
) -> Predictions:
    """Predict the class of each image, with a calibrated probability and the decision at the stored threshold.

    Images are prepared as in training. Where their true classes are known (folders, or a column of labels, with names of
    the model's classes), metrics with intervals are measured as well.

    Args:
        run: Run directory of ``crossgraft tune``, the folder ``model`` of one, what ``fine_tune`` returned, or a model from
            ``load_saved_model``.
        images: An image file, a list of them, a folder, a table (file or DataFrame) with a column of paths, an ``.npz`` file,
            what else ``open_dataset`` takes, an open ``Dataset``, images of Pillow, or arrays (height, width) or (height,
            width, 1 or 3) of type uint8, uint16 or float in [0, 1]. Labels may be missing.
        {options}

    Returns:
        The predictions; with ``out`` also ``predictions.csv``, ``report.html``, ``report.json`` and ``run.json`` there.

    Raises:
        RunDirectoryError: ``run`` holds no model, or ``out`` is in use or holds another run.
        WeightsMismatchError: The weights of the model are damaged or changed.
        DataError: There are no images, or a table is damaged.
        UnreadableImageError: An image cannot be decoded, and ``skip_unreadable`` is off.
        UsageError: An argument is wrong or contradicts another.

    Cost: one forward pass per image; about 50 images a second for a MobileNet at 224 pixels on two cores.
    """
    reporter, threads = call.reporter, available_cores() if options.workers is None else options.workers
    size = BATCH_SIZE if options.batch_size is None else options.batch_size
    if threads < 1 or size < 1:
        raise UsageError(f"Threads and batch size must be at least 1, found {threads} and {size}.")
    with limit_threads(threads), reuse_freed_memory():
        model = run.model if isinstance(run, FineTuningResult) else run
        if isinstance(images, Iterator):
            images = list(images)
        if not isinstance(model, SavedModel):
            model = load_saved_model(model, device=options.device, allow_code=options.allow_code)
        with call.directory(
            _location(images),
            typed=configuration(options),
            resolved={"model": model.facts.weights_fingerprint, "batch_size": size},
            out=options.out,
        ) as directory:
            opened = _open(images, model, options, num_threads=threads, reporter=reporter)
            readable = opened.readable()
            known = true_classes(readable, model, reporter)
            foresee_logits(model.classifier, readable, batch_size=size, reporter=reporter)
            start = time.perf_counter()
            logits = compute_logits(model.classifier, readable, batch_size=size, reporter=reporter)
            seconds = time.perf_counter() - start
            answers = answer(model.facts, logits)
            rows = _rows(opened, logits, answers, known)
            record = _record(model, opened, rows, known, answers, seconds)
            return _finish(
                record, opened, directory, reporter, no_images=options.no_images, show_names=options.show_names
            )


def _location(images: object) -> str:
    if isinstance(images, str | Path):
        return str(images)
    return images.name if isinstance(images, Dataset) else given_kind(images) or "arrays"


def _open(
    images: Images, model: SavedModel, options: PredictOptions, *, num_threads: int, reporter: Reporter
) -> ImageRows:
    facts = model.facts
    if isinstance(images, str | Path) or given_kind(images) is not None:
        return open_images(
            cast("Files", images),
            options,
            known_classes=facts.class_names,
            several_labels=not recorded_task(facts).partitions,
            default_window=facts.trained_on.window,
            default_slices=facts.trained_on.slices,
            num_threads=num_threads,
            reporter=reporter,
        )
    said = [name for name in options_of(ImageOptions) if getattr(options, name)]
    if said:
        raise UsageError(f"{said[0]} belongs to opening the data, but images were given that are open already.")
    if not hasattr(images, "__len__"):
        location_text(images)
    return images if isinstance(images, Dataset) else images_of_arrays(cast("Sequence[np.ndarray]", images))


def _rows(images: ImageRows, logits: np.ndarray, answers: Answers, known: KnownTargets) -> list[PredictionRow]:
    """One row per image that was listed, in the order of the data; unreadable ones say why."""
    rows = [
        PredictionRow(
            row=number + 1,
            name=images.image_name(number),
            predicted=[],
            decision=UNREADABLE,
            probabilities=[],
            certainty=None,
            reason=reason,
        )
        for number, reason in images.unreadable.items()
    ]
    rows += [
        PredictionRow(
            row=int(number) + 1,
            name=images.image_name(int(number)),
            predicted=answers.decisions[index],
            decision=in_words(answers.decisions[index]),
            probabilities=answers.probabilities[index].tolist(),
            logits=logits[index].tolist(),
            certainty=float(answers.certainty[index]),
            target=known.names[index] if known.names else None,
        )
        for index, number in enumerate(images.readable_rows)
    ]
    return sorted(rows, key=lambda row: row.row)


def _record(
    model: SavedModel,
    images: ImageRows,
    rows: list[PredictionRow],
    known: KnownTargets,
    answers: Answers,
    seconds: float,
) -> PredictionRecord:
    facts = model.facts
    decided = [name for row in rows if row.probabilities for name in row.predicted or [row.decision]]
    names = dict.fromkeys([*facts.class_names, *decided])
    numbers = images.readable_rows[np.argsort(-answers.certainty, kind="stable")] + 1
    return PredictionRecord(
        model=facts.model,
        model_trained_on=facts.trained_on.name,
        model_fingerprint=facts.weights_fingerprint,
        task=facts.task,
        class_names=facts.class_names,
        data_name=images.name,
        num_images=len(images.readable_rows),
        num_unreadable=len(images.unreadable),
        temperature=facts.temperature,
        thresholds=facts.thresholds,
        rows=rows,
        predicted_counts={name: decided.count(name) for name in names},
        most_certain=numbers[:_SHOWN].tolist(),
        least_certain=numbers[::-1][:_SHOWN].tolist(),
        metrics=measure(answers.probabilities, known, facts, images.readable().groups),
        training_metrics=facts.metrics,
        images_per_second=len(images.readable_rows) / max(seconds, 1e-9),
        seconds=seconds,
        warnings=list(known.warnings),
        notes=list(images.reading),
        references=facts.references,
    )


def _finish(
    record: PredictionRecord,
    images: ImageRows,
    run: RunDirectory | None,
    reporter: Reporter,
    *,
    no_images: bool,
    show_names: bool,
) -> Predictions:
    names = [row.name or str(row.row) for row in record.rows]
    if not show_names:
        record = record.model_copy(update={"rows": [row.model_copy(update={"name": None}) for row in record.rows]})
    predictions = Predictions(record, names=names)
    if run is None:
        return predictions
    # The same folder is predicted again when images were added, so another fingerprint is no reason to refuse the run.
    data_fingerprint = images.readable().fingerprint
    run.update(data_fingerprint=data_fingerprint, weights_fingerprints={record.model.name: record.model_fingerprint})
    page = publish(
        run,
        record,
        reporter,
        tables={"predictions.csv": predictions.to_frame()},
        thumbnails=lambda: [] if no_images else _thumbnails(record, images),
    )
    return replace(predictions, out=run.path, report=page)


def _thumbnails(record: PredictionRecord, images: ImageRows) -> list[Thumbnail]:
    """Thumbnails of the most and the least certain images, each under the number of its row."""
    shown = dict.fromkeys([*record.most_certain, *record.least_certain])
    return [Thumbnail(class_name=str(row), png_base64=thumbnail_png(images.read(row - 1))) for row in shown]
