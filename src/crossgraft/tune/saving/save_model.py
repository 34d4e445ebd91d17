"""Writing the folder of a fine-tuned model (see ``saved_model``)."""

from __future__ import annotations

import hashlib
from pathlib import Path

import safetensors.torch

from crossgraft.models.classifier import Classifier
from crossgraft.models.fingerprint import weights_fingerprint
from crossgraft.storage.atomic import replace_folder
from crossgraft.storage.replacing import refuse_to_replace_folder
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.saving.checksums import checksums_of
from crossgraft.tune.saving.model_card import model_card
from crossgraft.tune.saving.record import SavedModelRecord, TrainingDataRecord
from crossgraft.tune.saving.saved_model import CARD_FILE, FACTS_FILE, WEIGHTS_FILE
from crossgraft.tune.sim.decorators import refuse_unstripped
from crossgraft.version import __version__


def describe_saved_model(
    record: TuningRecord,
    classifier: Classifier,
    *,
    seed: int,
    training_key: str = "",
    test_fingerprint: str = "",
    window: str | None = None,
    slices: str | None = None,
) -> SavedModelRecord:
    """What ``save_model`` writes beside the weights, from the record of a fine-tuning.

    Args:
        record: Says on what the model was trained and how well it does.
        classifier: The network; its recipe is kept.
        seed: Random seed of the run.
        training_key: Key of the training that left the network, by which the ledger of looks knows it.
        test_fingerprint: Fingerprint of the test images, by which the ledger knows them.
        window: Requested intensities of DICOM and NIfTI images that became black and white.
        slices: Requested slices of volumes that were images.
    """
    data, calibration = record.dataset, record.calibration
    return SavedModelRecord(
        crossgraft_version=__version__,
        recipe=classifier.recipe.to_json(),
        model=record.model,
        task=data.task,
        class_names=data.class_names,
        temperature=None if calibration is None else calibration.temperature,
        temperature_reason=record.calibration_reason
        if calibration is None
        else calibration.reason or f"fitted on {calibration.fitted_on}",
        thresholds=record.thresholds,
        trained_on=TrainingDataRecord(
            name=data.name,
            source=data.source,
            fingerprint=data.fingerprint,
            num_images=data.num_images,
            num_groups=data.num_groups,
            group_column=data.group_column,
            split_method=data.split_method,
            leakage=record.leakage,
            splits=record.splits,
            reading=data.reading,
            window=window,
            slices=slices,
            edits=record.edits,
        ),
        plugins=record.plugins,
        selection_rule=record.selection_rule,
        primary_metric=record.primary_metric,
        metrics=[row for row in record.metrics if row.class_name is None and row.attribute is None],
        unsound=[f"{check.title}: {check.text}" for check in record.checks if check.severity == "unsound"],
        similarity=record.similarity,
        batch_norm=record.batch_norm,
        keep=record.keep,
        seed=seed,
        training_key=training_key,
        test_fingerprint=test_fingerprint,
        references=record.references,
    )


_FILES = (WEIGHTS_FILE, CARD_FILE, FACTS_FILE)


def save_model(
    folder: str | Path, classifier: Classifier, facts: SavedModelRecord, *, overwrite: bool = False
) -> SavedModelRecord:
    """Write the folder of a saved model, whole or not at all.

    Args:
        folder: Usually ``<run directory>/model``; folders above it are made.
        classifier: The network as it was evaluated.
        facts: Facts from ``describe_saved_model``; fingerprints of the weights are filled in here.
        overwrite: Replace another saved model in its place; no other files are replaced.

    Returns:
        The facts as they were written.

    Raises:
        UsageError: ρSIM was not taken off.
        RunDirectoryError: There is a saved model in its place and ``overwrite`` is off, or something else.
        StorageError: Disk full, no permission …; an older model stays as it was.
    """
    refuse_unstripped(classifier, "The network")
    folder = Path(folder)
    refuse_to_replace_folder(folder, _FILES, _is_saved_model, what="a saved model", overwrite=overwrite)
    state = {name: tensor.detach().to("cpu").contiguous().clone() for name, tensor in classifier.state_dict().items()}
    weights = safetensors.torch.save(state, metadata={"format": "pt"})
    facts = facts.model_copy(
        update={
            "recipe": classifier.recipe.to_json(),
            "weights_file": WEIGHTS_FILE,
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "weights_fingerprint": weights_fingerprint(classifier),
        }
    )
    facts = facts.model_copy(update={"checksums": checksums_of(facts)})
    content: dict[str, str | bytes] = {
        WEIGHTS_FILE: weights,
        CARD_FILE: model_card(facts),
        FACTS_FILE: facts.model_dump_json(indent=1),
    }
    replace_folder(folder, content, what="the model", advice="Free some space or choose another --out.")
    return facts


def _is_saved_model(folder: Path) -> bool:
    facts = folder / FACTS_FILE
    return facts.is_file() and b'"kind": "model"' in facts.read_bytes()[:200]
