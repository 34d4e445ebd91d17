"""What predictions of a fine-tuned model and of a few-shot head have in common: rows, counts, table and page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossgraft.data.rows import ImageRows
from crossgraft.errors import OtherRunError
from crossgraft.metrics.words import overall
from crossgraft.predict.page import NEW, SEEN
from crossgraft.progress import Reporter
from crossgraft.records.base import ImageAnswer, Thumbnail
from crossgraft.running.publishing import publish
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tasks import recorded_task
from crossgraft.tune.known_targets import AlreadySeen, KnownTargets
from crossgraft.tune.looks import count_test_look
from crossgraft.tune.pictures import Answered, pictures_of_answers
from crossgraft.tune.predictions import UNREADABLE, Predictions
from crossgraft.tune.record import PredictionRecord, PredictionRow
from crossgraft.tune.saving.saved_model import Answers, in_words, read_known_images
from crossgraft.words.formatting import counted

_SHOWN = 12  # images of each end in the report
PREDICTED_FILE = "predicted_images.json"
"""Digests of the images that were predicted, in an order that says nothing."""


def rows_of(
    images: ImageRows, logits: np.ndarray, answers: Answers, known: KnownTargets, seen: AlreadySeen
) -> list[PredictionRow]:
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
            seen=None if seen.rows is None else bool(seen.rows[index]),
        )
        for index, number in enumerate(images.readable_rows)
    ]
    return sorted(rows, key=lambda row: row.row)


def totals_of(images: ImageRows, rows: list[PredictionRow], answers: Answers, class_names: list[str]) -> dict[str, Any]:
    """Fields of a record about all predictions: images of each predicted class, the most certain ones, the least certain ones.

    No image is both: of few images each half is shown.
    """
    decided = [name for row in rows if row.probabilities for name in row.predicted or [row.decision]]
    numbers = images.readable_rows[np.argsort(-answers.certainty, kind="stable")] + 1
    num_most, num_least = min(_SHOWN, -(-len(numbers) // 2)), min(_SHOWN, len(numbers) // 2)
    return {
        "predicted_counts": {name: decided.count(name) for name in dict.fromkeys([*class_names, *decided])},
        "most_certain": numbers[:num_most].tolist(),
        "least_certain": numbers[::-1][:num_least].tolist(),
    }


def with_look(
    record: PredictionRecord, images: ImageRows, known: KnownTargets, measured: Sequence[str], reporter: Reporter
) -> PredictionRecord:
    """The record with its place in the ledger, where anything was measured on images that the model has not learned from.

    Args:
        record: What was predicted and measured.
        images: The images that were decoded.
        known: Their true classes.
        measured: What names the model and nothing else. That of a run on its own test images is the look that ``tune`` counted.
        reporter: Reporter of a ledger that cannot be used.
    """
    if not record.metrics or not known.unseen:
        return record
    primary = recorded_task(record).primary_metric
    looks = count_test_look(
        images,
        known.measured,
        measured,
        next((row for row in overall(record.metrics) if row.metric == primary), None),
        command="predict" if record.head is None else "fewshot",
        reporter=reporter,
    )
    return record.model_copy(update={"looks": looks})


def refuse_to_lose(run: RunDirectory, images: ImageRows) -> None:
    """The same folder is predicted again when images were added; not when others would take the place of earlier ones.

    Raises:
        OtherRunError: Images that were predicted in this run directory are no longer among ``images``.
        DataError: The file that says which they were is damaged.
    """
    earlier = read_known_images(run.path / PREDICTED_FILE) or frozenset()
    lost = earlier - {digest.hex() for digest in images.image_digests}
    if lost:
        raise OtherRunError(
            f"{run.path} holds predictions of {counted(len(earlier), 'image')}, of which {len(lost)} are not among these. Use "
            "--overwrite to replace them, or another --out to keep both."
        )


def finish(
    record: PredictionRecord,
    images: ImageRows,
    run: RunDirectory | None,
    reporter: Reporter,
    *,
    no_images: bool,
    show_names: bool,
) -> Predictions:
    """The predictions; in a run directory also the table and the page."""
    names = [row.name or str(row.row) for row in record.rows]
    if not show_names:
        record = record.model_copy(update={"rows": [row.model_copy(update={"name": None}) for row in record.rows]})
    predictions = Predictions(record, names=names)
    if run is None:
        return predictions
    run.update(weights_fingerprints={record.model.name: record.model_fingerprint})
    run.write(PREDICTED_FILE, json.dumps(sorted(digest.hex() for digest in images.readable().image_digests)))
    page = publish(
        run,
        record,
        reporter,
        tables={"predictions.csv": predictions.to_frame()},
        thumbnails=lambda: [] if no_images else _thumbnails(record, images),
    )
    return replace(predictions, out=run.path, report=page)


def _thumbnails(record: PredictionRecord, images: ImageRows) -> list[Thumbnail]:
    """Every image with its answer, as far as a page holds them; the most and the least certain ones in any case."""
    answered = [
        Answered(
            row=row.row - 1,
            split={True: SEEN, False: NEW, None: ""}[row.seen],
            target=row.target,
            answers=(
                ImageAnswer(
                    decision=row.decision,
                    certainty=round(row.certainty, 4),
                    is_right=None if row.target is None else row.decision == row.target,
                ),
            ),
        )
        for row in record.rows
        if row.certainty is not None
    ]
    return pictures_of_answers(answered, images, needed=[*record.most_certain, *record.least_certain])
