"""A fine-tuned model as a folder: weights, everything about them, and a page for people.

``model/weights.safetensors`` holds the tensors under their names, ``model/model.json`` everything else (see
``tune.saving.record``), ``model/MODEL_CARD.md`` the same in words. Nothing in it names a path or a patient, so the folder can
be moved and passed on.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
import safetensors.torch
import torch
from jaxtyping import Float, Float64
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from torch import Tensor, nn

from crossgraft.compute import is_out_of_memory, resolve_device
from crossgraft.data import Split
from crossgraft.errors import CrossgraftError, DataError, MissingWeightsError, RunDirectoryError, WeightsMismatchError
from crossgraft.metrics.record import ThresholdRecord
from crossgraft.models.adapted import look
from crossgraft.models.classifier import Classifier, ClassifierRecipe, read_recipe, rebuild_classifier
from crossgraft.models.device import explain_lost_device, explain_missing_operations, move_to_device
from crossgraft.models.penultimate import forget_caches
from crossgraft.models.sources.local_checkpoint import check_fit
from crossgraft.models.trusted_code import TrustedCode, trusted_code
from crossgraft.paths import read_whole
from crossgraft.records.base import SCHEMA_VERSION, RunRecord
from crossgraft.tasks import DEFAULT_THRESHOLD, recorded_task
from crossgraft.tune.measuring.logits import logits_of_batches
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.tune.record import TuningRecord
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.types import AllowedCode, RecordedTask

# Checksums of ``model.json``, so that a changed description of a model is refused by the name of what was changed.
#
# They find damage and careless edits. They are no signature: who changes the file on purpose can compute them again, which is
# why nothing in the file is trusted with code either (see ``models.trusted_code``).

_FIELD = "checksums"


def checksums_of(facts: SavedModelRecord) -> dict[str, str]:
    """SHA-256 of each field of the record but the checksums; of a mapping, one for each of its keys.

    A value is hashed as canonical JSON (sorted keys, no spaces, shortest floats), so that the layout of the file is free.
    """
    values = cast("dict[str, object]", facts.model_dump(mode="json", exclude={_FIELD}))
    digests: dict[str, str] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            digests |= {f"{name}.{key}": _digest(part) for key, part in cast("Mapping[str, object]", value).items()}
        else:
            digests[name] = _digest(value)
    return digests


def refuse_changes(facts: SavedModelRecord, path: Path) -> None:
    """Compare a record that was read with the checksums in it.

    Raises:
        DataError: A field was changed, added or removed; the message names it.
    """
    if not facts.checksums:
        raise DataError(
            f"{path} has no checksums: it was edited, or written by an earlier version of crossgraft. Restore the file, or "
            "fine-tune again."
        )
    now = {
        key: digest
        for key, digest in checksums_of(facts).items()
        if key in facts.checksums or key.partition(".")[0] in facts.model_fields_set
    }  # without fields that the version that wrote it did not know
    changed = sorted(key for key in {*now, *facts.checksums} if now.get(key) != facts.checksums.get(key))
    if changed:
        raise DataError(
            f"{path} was changed after it was written: {', '.join(changed)}. The model would decide otherwise than it was "
            "measured. Restore the file, or fine-tune again."
        )


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


IMAGES_FILE = "training_images.json"
"""Digests of the images that had a part in the fine-tuning. They lie beside the folder, which is passed on without them: who
has an image could find out that it was trained on."""


def read_known_images(path: Path) -> frozenset[str] | None:
    """The digests; None where the folder was passed on without them.

    Raises:
        DataError: The file is damaged.
    """
    try:
        return frozenset(TypeAdapter(list[str]).validate_json(read_whole(path)))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        reason = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else error.strerror
        raise DataError(f"{path} is damaged: {reason}. Restore the file, or remove it to go on without it.") from error


@runtime_checkable
class Answering(Protocol):
    """What a record says of a model, or of a head, that gives answers."""

    @property
    def task(self) -> RecordedTask:
        """The recorded name."""
        ...

    @property
    def class_names(self) -> list[str]:
        """In the order of the outputs."""
        ...

    @property
    def thresholds(self) -> list[ThresholdRecord]:
        """Empty: the most probable class is decided for."""
        ...


class Answers(NamedTuple):
    """What the model says of n images.

    Attributes:
        probabilities: (n, C), after the temperature.
        decisions: Names of the classes or labels that each image is decided for.
        certainty: (n,) the highest probability; with several labels per image the least distance of a probability from
            0.5, times two.
    """

    probabilities: Float64[np.ndarray, "num_images num_outputs"]
    decisions: list[list[str]]
    certainty: Float64[np.ndarray, " num_images"]


def answer(facts: SavedModelRecord, logits: Float[np.ndarray, "num_images num_outputs"]) -> Answers:
    """Probabilities and decisions by the temperature and the thresholds that are stored with the model."""
    task = recorded_task(facts)
    probabilities = task.probabilities(logits, facts.temperature)
    decided = task.decide(probabilities, thresholds_of(facts))
    decisions = [task.names_of(row, facts.class_names) for row in decided]
    return Answers(probabilities, decisions, task.certainty(probabilities))


def named_thresholds(facts: Answering) -> dict[str, float]:
    """Class or label → threshold it is decided by; empty where the default rule of the task is meant."""
    known = {row.class_name: row.threshold for row in facts.thresholds if row.threshold is not None}
    columns = recorded_task(facts).threshold_columns(len(facts.class_names))
    asked = [facts.class_names[column] for column in columns] if known else []
    return {name: known.get(name, DEFAULT_THRESHOLD) for name in asked}


def thresholds_of(facts: Answering) -> Sequence[float] | None:
    """As ``decide`` takes them; None where the default rule of the task is meant."""
    return list(named_thresholds(facts).values()) or None


def in_words(decision: Sequence[str]) -> str:
    """Names with semicolons between them, or that there is none."""
    return "; ".join(decision) or NO_LABEL


MODEL_FOLDER, SPLIT_FILE = "model", "split.json"
"""Where the model, and the split, lie in a run directory."""
WEIGHTS_FILE, FACTS_FILE, CARD_FILE = "weights.safetensors", "model.json", "MODEL_CARD.md"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model that was read back: its network in eval mode, and everything else about it.

    Attributes:
        classifier: In eval mode.
        facts: What ``model.json`` says.
        device: Where the network is.
        known_images: Digests of the images that it was trained on or picked with; None for a folder without its run.
        split: The split of the run, or the file that holds it where there is one.
    """

    classifier: Classifier
    facts: SavedModelRecord
    device: str
    known_images: frozenset[str] | None = None
    split: Split | Path | None = None

    def find_split(self) -> Split | None:
        """The split of the run that made the model, read when it is needed.

        Raises:
            DataError: The file is not a split.
        """
        if not isinstance(self.split, Path):
            return self.split
        return Split.load(self.split) if self.split.exists() else None

    def logits(self, images: Float[Tensor, "num_images channels height width"]) -> Float[Tensor, "num_images num_outputs"]:
        """Logits of prepared images (see ``classifier.preprocessing``), before the temperature, on the CPU.

        The same images in batches of the same size give the same bits as when the model was evaluated, on the same
        machine, with the same versions and threads.
        """
        return next(logits_of_batches(self.classifier, [images]))

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        from crossgraft.words.notebook import facts_table

        facts = self.facts
        return facts_table(
            f"{facts.model.name}, fine-tuned on {facts.trained_on.name}",
            {
                recorded_task(facts).nouns: ", ".join(facts.class_names),
                "architecture": facts.model.architecture,
                "images become": facts.model.preprocessing.description,
                "temperature": facts.temperature,
                "licence of the pretrained weights": facts.model.licence,
                "use": "research use, not a medical device",
            },
        )


def load_saved_model(
    run: str | Path, *, device: str = "cpu", allow_code: AllowedCode | TrustedCode = None, network: nn.Module | None = None
) -> SavedModel:
    """Read a saved model back.

    Args:
        run: A run directory of ``crossgraft tune``, or the folder ``model`` in one, wherever it was moved.
        device: ``auto``, ``cpu``, ``cuda``, ``cuda:N`` or ``mps``.
        allow_code: Python file or folder with the function that builds a network of your own, or its name
            ``package.module:factory``. A saved model is data: without this no code that it names runs.
        network: The whole network, head included, where nobody can build it from its name; it is changed.

    Raises:
        RunDirectoryError: There is no such folder, or no model in it; the message says why.
        DataError: ``model.json`` is damaged, does not fit its network or is from a newer version.
        MissingWeightsError: The file of weights is not there.
        WeightsMismatchError: The weights are damaged, edited, or of another network.
        UntrustedCodeError: The network is built by a function that ``allow_code`` does not hold.
        UsageError: The network cannot be built here, or the device is not available.

    Cost: beside reading, a forward pass of one image.
    """
    folder = find_saved_model(Path(run))
    facts = read_facts(folder)
    state = _read_weights(folder / WEIGHTS_FILE, facts)
    recipe = read_recipe(facts.recipe)
    _refuse_contradictions(facts, recipe, folder / FACTS_FILE)
    _refuse_huge_head(recipe, state, facts)
    classifier = rebuild_classifier(recipe, trusted=trusted_code(allow_code), network=network)
    _load_strictly(classifier, state, facts)
    device = resolve_device(device)
    move_to_device(classifier, device)
    _refuse_misfit(classifier, device, folder / FACTS_FILE)
    known_images = read_known_images(folder.parent / IMAGES_FILE)
    split = folder.parent / SPLIT_FILE
    return SavedModel(classifier.eval(), facts, device, known_images, split)


def find_saved_model(run: Path) -> Path:
    """The folder of the model in a run directory, or ``run`` itself where it is that folder.

    Raises:
        RunDirectoryError: There is none; the message says what there is.
    """
    if not run.is_dir():
        what = "is a file" if run.exists() else "does not exist"
        raise RunDirectoryError(f"{run} {what}. Give the run directory of crossgraft tune (--out), or its folder model.")
    for folder in (run / MODEL_FOLDER, run):
        if (folder / FACTS_FILE).is_file():
            return folder
    if not (run / "run.json").is_file():
        raise RunDirectoryError(f"{run} holds no saved model: there is no {FACTS_FILE} in it or in its folder model.")
    raise RunDirectoryError(f"The run in {run} left no model: {_why_no_model(run)}{_models_of_folds(run)}")


def _models_of_folds(run: Path) -> str:
    """Where the model of one training is, where there are some."""
    folds = sorted(path.parents[1] for path in run.glob(f"folds/*/{MODEL_FOLDER}/{FACTS_FILE}"))
    return f" Give that of one training: {shlex.quote(str(folds[0]))}" if folds else ""


def _why_no_model(run: Path) -> str:
    try:
        record = RunRecord.model_validate_json(read_whole(run / "run.json"))
        if record.command != "tune":
            return f"it is a run of crossgraft {record.command}. Give one of crossgraft tune."
        if record.state != "done":
            return f"it is {record.state}. Run the same command again; it goes on where it stopped."
        reason = TuningRecord.model_validate_json(read_whole(run / "report.json")).saved_model_reason
    except (ValidationError, OSError):
        return "its records cannot be read. Fine-tune again."
    return f"{reason or 'none was asked for'}."


def read_facts(folder: Path) -> SavedModelRecord:
    """What ``model.json`` says, without the network.

    Args:
        folder: Folder of the model, from ``find_saved_model``.

    Raises:
        DataError: The file is damaged, was changed, or is from a newer version.
    """
    path = folder / FACTS_FILE
    try:
        text = path.read_bytes()
        facts = SavedModelRecord.model_validate_json(text)
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror or error}.") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise DataError(
            f"{path} is damaged, or was written by another version of crossgraft: {place}: {first['msg']}. Restore the file, "
            "or fine-tune again."
        ) from error
    if facts.schema_version > SCHEMA_VERSION:
        raise DataError(
            f"{path} has schema version {facts.schema_version}; this crossgraft reads up to {SCHEMA_VERSION}. Upgrade it."
        )
    refuse_changes(facts, path)
    return facts


def _read_weights(path: Path, facts: SavedModelRecord) -> dict[str, Tensor]:
    if not path.is_file():
        raise MissingWeightsError(f"The weights of the model are missing: {path}. Copy the whole folder of the model.")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != facts.weights_sha256:
        raise WeightsMismatchError(
            f"{path} is not the file that {FACTS_FILE} describes: it was damaged or changed, or belongs to another model. Copy "
            "the folder of the model again, or fine-tune again."
        )
    try:
        return safetensors.torch.load(content)
    except SafetensorError as error:
        raise WeightsMismatchError(f"{path} cannot be read as safetensors: {error}. Copy it again.") from error


def _refuse_contradictions(facts: SavedModelRecord, recipe: ClassifierRecipe, path: Path) -> None:
    if len(facts.class_names) != recipe.num_outputs or len(set(facts.class_names)) != len(facts.class_names):
        raise DataError(
            f"{path} contradicts itself: {len(facts.class_names)} class names for {recipe.num_outputs} outputs of the "
            "network. Restore the file."
        )
    strangers = [row.class_name for row in facts.thresholds if row.class_name not in facts.class_names]
    if strangers:
        raise DataError(f"{path} has a threshold for {strangers[0]}, which is none of its classes. Restore the file.")
    if facts.temperature is not None and not facts.temperature > 0:
        raise DataError(f"{path} has the temperature {facts.temperature}; it must be positive. Restore the file.")


def _refuse_huge_head(recipe: ClassifierRecipe, state: Mapping[str, Tensor], facts: SavedModelRecord) -> None:
    """A head that is larger than the whole file, before it is allocated; what else differs is listed by ``check_fit``."""
    expected = (recipe.num_outputs, recipe.num_features)
    in_file = tuple(state["head.weight"].shape) if "head.weight" in state else "missing"
    if math.prod(expected) > sum(tensor.numel() for tensor in state.values()):
        raise WeightsMismatchError(
            f"The weights {WEIGHTS_FILE} do not fit {facts.model.name}: head.weight is {in_file} in the file and {expected} in "
            f"{FACTS_FILE}. Copy the whole folder of the model again."
        )


def _refuse_misfit(classifier: Classifier, device: str, path: Path) -> None:
    """Let the network look at one image, so that a description that it cannot follow is found here, by its name.

    The model and the global random numbers stay as they were.
    """
    name = classifier.recipe.name
    try:
        with (
            torch.random.fork_rng(devices=[device] if torch.device(device).type == "cuda" else []),
            explain_missing_operations(name, device),
            explain_lost_device(device),
        ):
            shape = tuple(look(classifier).shape)
    except CrossgraftError:
        raise
    except (RuntimeError, ValueError, TypeError, IndexError, AssertionError) as error:
        if is_out_of_memory(error):
            raise
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        raise DataError(f"{path} does not fit its network {name}: {reason}. Restore the file.") from error
    finally:
        forget_caches(classifier)  # layers that keep something of a forward pass would keep it without its graph
    if shape != (1, classifier.num_features):
        raise DataError(
            f"{path} does not fit its network {name}: it gives features of the shape {shape} for one image, not "
            f"{(1, classifier.num_features)}. Restore the file."
        )


def _load_strictly(classifier: Classifier, state: Mapping[str, Tensor], facts: SavedModelRecord) -> None:
    """Copy every tensor into its place, none left over, in the type that it was saved in."""
    check_fit(classifier, state, file=WEIGHTS_FILE, model=facts.model.name)
    number_type = state["head.weight"].dtype
    if not number_type.is_floating_point:
        raise WeightsMismatchError(
            f"The weights {WEIGHTS_FILE} do not fit {facts.model.name}: head.weight has numbers of the type {number_type}, which "
            "no network is trained in. Copy the whole folder of the model again."
        )
    classifier.to(dtype=number_type)
    try:
        classifier.load_state_dict(dict(state), strict=True)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise WeightsMismatchError(f"The weights {WEIGHTS_FILE} do not fit {facts.model.name}: {reason}") from error
