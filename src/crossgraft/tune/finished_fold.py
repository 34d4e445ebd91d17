"""A fold whose model was picked and measured, and its saved model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.running.run_directory import RunDirectory
from crossgraft.tune.assemble import record_of_fold
from crossgraft.tune.jobs import Trained
from crossgraft.tune.looks import fingerprint_of_tested
from crossgraft.tune.measuring.evaluation import Evaluation, FoldPredictions
from crossgraft.tune.parts import FoldRows
from crossgraft.tune.planning.fold_networks import FoldNetworks
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.saving.known_images import IMAGES_FILE
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.tune.saving.save_model import describe_saved_model, save_model
from crossgraft.tune.saving.saved_model import MODEL_FOLDER, SavedModel


@dataclass(frozen=True, eq=False)
class FinishedFold:
    """A fold whose model was picked and measured."""

    trained: Trained
    networks: FoldNetworks
    predictions: FoldPredictions
    classifier: Classifier


def save_models(
    prepared: Preparation,
    record: TuningRecord,
    finished: Sequence[FinishedFold],
    of_folds: Mapping[int, Evaluation],
    run: RunDirectory,
) -> None:
    """The model as ``model``; with folds one per fold, because the metrics are of all of them and of none alone."""
    for fold in finished:
        parts = fold.predictions.parts
        folder = f"folds/{parts.name}/" if of_folds else ""
        own = record_of_fold(record, of_folds[parts.fold or 0]) if of_folds else record
        save_model(run.path / folder / MODEL_FOLDER, fold.classifier, _facts(prepared, own, fold), overwrite=True)
        digests = sorted(_known_images(prepared, parts))  # an order that says nothing
        run.write(f"{folder}{IMAGES_FILE}", json.dumps(digests))


def model_in_memory(prepared: Preparation, record: TuningRecord, fold: FinishedFold) -> SavedModel:
    """The model as it would be read back."""
    own = {"weights_fingerprint": weights_fingerprint(fold.classifier)}
    facts = _facts(prepared, record, fold).model_copy(update=own)
    known, split = _known_images(prepared, fold.predictions.parts), prepared.rows.split_record()
    return SavedModel(fold.classifier, facts, "cpu", frozenset(known), split)


def _facts(prepared: Preparation, record: TuningRecord, fold: FinishedFold) -> SavedModelRecord:
    options = prepared.options
    return describe_saved_model(
        record,
        fold.classifier,
        seed=options.seed,
        training_key=fold.trained.record.key,
        test_fingerprint=fingerprint_of_tested(prepared.rows.as_they_came, fold.predictions.parts.test),
        window=options.window,
        slices=options.slices,
    )


def _known_images(prepared: Preparation, parts: FoldRows) -> set[str]:
    """Digests of the images that had a part in the fine-tuning; of edited ones also as they came."""
    rows = prepared.rows
    of_both = [rows.dataset.image_digests, *([] if rows.unedited is None else [rows.unedited.image_digests])]
    return {digests[row].hex() for digests in of_both for row in (*parts.train, *parts.val)}
