"""Anything that turns images into probabilities, under one face: a saved run, an ONNX graph, a classifier, a function."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Float64
from pydantic import ValidationError

from crossgraft import optional
from crossgraft.data.rows import ImageRows
from crossgraft.data.transforms import prepare_batch
from crossgraft.errors import DataError, UsageError
from crossgraft.export.onnx_model import INPUT, METADATA_KEY, OUTPUTS
from crossgraft.export.record import ExportedModelRecord
from crossgraft.paths import shortened
from crossgraft.progress import Reporter
from crossgraft.tasks import recorded_task
from crossgraft.tune.measuring.logits import compute_logits
from crossgraft.tune.result import FineTuningResult
from crossgraft.tune.saving.saved_model import SavedModel, answer, load_saved_model
from crossgraft.types import AllowedCode, Preprocessing

Probabilities = Float64[np.ndarray, "num_images num_classes"]
AT_ONCE = 64
"""Images that a graph, a classifier or a function gets together."""
_ROUNDING = 1e-3


@dataclass(frozen=True)
class Subject:
    """What is audited.

    Attributes:
        name: For tables and messages.
        class_names: Names of the columns, in their order.
        ask: Probabilities of images.
        model: The saved model, where it is one; None for what can only be asked.
        partitions: Whether an image has one class, so that its probabilities sum to 1.
    """

    name: str
    class_names: tuple[str, ...]
    ask: Callable[[ImageRows, Reporter], np.ndarray]
    model: SavedModel | None = None
    partitions: bool = True

    def probabilities(self, images: ImageRows, reporter: Reporter | None = None) -> Probabilities:
        """(n, C) of the images, in their order.

        Raises:
            DataError: They have another shape, are not in [0, 1], or do not sum to 1.
        """
        answers = np.asarray(self.ask(images, reporter or Reporter(quiet=True)), dtype=np.float64)
        expected = (len(images), len(self.class_names))
        if answers.shape != expected:
            raise DataError(f"{self.name} gave probabilities of shape {answers.shape} for {expected}: images × classes.")
        if not np.isfinite(answers).all() or answers.min() < -_ROUNDING or answers.max() > 1 + _ROUNDING:
            raise DataError(f"{self.name} gave numbers that are no probabilities: they must lie in [0, 1].")
        if self.partitions and np.abs(answers.sum(axis=1) - 1).max() > _ROUNDING:
            raise DataError(
                f"{self.name} gave probabilities that do not sum to 1 for each image. Turn logits into them with a softmax."
            )
        return np.clip(answers, 0, 1)


def subject_of(
    model: object, *, class_names: Sequence[str] | None = None, device: str = "auto", allow_code: AllowedCode = None
) -> Subject:
    """What ``model`` says, whatever it is.

    Args:
        model: Run directory of ``crossgraft tune``, a model of ``load_saved_model``, what ``fine_tune`` returned, an ``.onnx``
            file of ``crossgraft export``, a classifier with ``predict_proba`` and ``classes_``, or a function. The last two get
            a list of images, (height, width, 1 or 3) each, and return (n, C), or (n,) of the second of two classes.
        class_names: Names of the columns, where the model does not know them.
        device: Where the network of a saved run goes.
        allow_code: Code that may build the network of a saved run.

    Raises:
        UsageError: It is none of these, or the names of its classes are not known.
        RunDirectoryError: The folder holds no model.
        DataError: The file is no graph of ``crossgraft export``.
        MissingExtraError: onnxruntime is not installed.
    """
    if isinstance(model, FineTuningResult):
        model = model.model
    if isinstance(model, str | Path):
        path = Path(model)
        model = _onnx(path) if path.suffix == ".onnx" else load_saved_model(path, device=device, allow_code=allow_code)
    if isinstance(model, Subject):
        return model
    if isinstance(model, SavedModel):
        return _saved(model)
    known = class_names if class_names is not None else getattr(model, "classes_", None)
    if known is None:
        raise UsageError(
            f"The classes of {type(model).__name__} are not known. Name its columns in their order: class_names=[…]."
        )
    names = tuple(str(name) for name in cast("Sequence[object]", known))
    ask = getattr(model, "predict_proba", model)
    if not callable(ask):
        raise UsageError(
            f"{type(model).__name__} cannot be asked about images. Give a run directory, an .onnx file, a classifier with "
            "predict_proba, or a function of a list of images."
        )
    name = str(getattr(model, "__name__", type(model).__name__))
    return Subject(name, names, lambda images, reporter: _in_batches(cast("Callable[[Any], Any]", ask), images, reporter, name))


def _saved(model: SavedModel) -> Subject:
    def ask(images: ImageRows, reporter: Reporter) -> np.ndarray:
        return answer(model.facts, compute_logits(model.classifier, images, reporter=reporter)).probabilities

    facts = model.facts
    return Subject(facts.model.name, tuple(facts.class_names), ask, model, recorded_task(facts).partitions)


def _onnx(path: Path) -> Subject:
    """A graph that holds the whole way from an image in [0, 1] to calibrated probabilities, with its description inside."""
    onnxruntime: Any = optional.require("onnxruntime", extra="export", needed_for="an .onnx file")
    if path.exists() and not path.is_file():  # onnxruntime would wait for a pipe for ever
        raise DataError(f"{path} is a folder, a pipe or a device, not a file. Give the .onnx file itself.")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        description = session.get_modelmeta().custom_metadata_map[METADATA_KEY]
        facts = ExportedModelRecord.model_validate_json(description)
    except (OSError, KeyError, ValidationError, RuntimeError) as error:
        raise DataError(f"{path.name} is no graph that crossgraft export wrote. Give a function of images instead.") from error
    except _errors_of_onnxruntime() as error:
        raise DataError(f"{path.name} cannot be read as an ONNX graph: {' '.join(str(error).split())}") from error
    size = Preprocessing(**facts.preprocessing.model_dump(exclude={"description"}))
    plain = replace(size, mean=(0.0,) * size.channels, std=(1.0,) * size.channels)

    def ask(images: list[np.ndarray]) -> np.ndarray:
        batch = prepare_batch(images, plain).numpy()
        try:
            return session.run([OUTPUTS[1]], {INPUT: batch})[0]
        except (ValueError, RuntimeError, *_errors_of_onnxruntime()) as error:
            raise DataError(
                f"The graph {path.name} can be read, but fails on images of shape {batch.shape}: "
                f"{shortened(' '.join(str(error).split()))}. Export it again with crossgraft export."
            ) from error

    name = f"{facts.name} ({path.name})"
    return Subject(
        name,
        tuple(facts.class_names),
        lambda images, reporter: _in_batches(ask, images, reporter, name),
        partitions=recorded_task(facts).partitions,
    )


def _errors_of_onnxruntime() -> tuple[type[Exception], ...]:
    """Its classes of errors, one per status of the C interface; they share no base but ``Exception``."""
    state = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    return tuple(each for each in vars(state).values() if isinstance(each, type) and issubclass(each, Exception))


def _in_batches(ask: Callable[[Any], Any], images: ImageRows, reporter: Reporter, name: str) -> np.ndarray:
    with reporter.stage(f"Asking {name}", total=len(images)) as stage:
        parts: list[np.ndarray] = []
        for first in range(0, len(images), AT_ONCE):
            batch = [images.read(row) for row in range(first, min(first + AT_ONCE, len(images)))]
            parts.append(_one_row_each(ask(batch), len(batch), name))
            stage.advance(len(batch))
    if len({part.shape[1:] for part in parts}) > 1:
        raise DataError(f"{name} gave another number of classes for some images.")
    return np.concatenate(parts)


def _one_row_each(answer: object, number: int, name: str) -> np.ndarray:
    """What was said of a batch, (number, C)."""
    try:
        rows = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:  # texts, rows of different lengths, anything
        raise DataError(
            f"{name} gave {type(answer).__name__} that is no array of numbers: one row of probabilities per image is needed."
        ) from error
    if rows.ndim not in (1, 2) or len(rows) != number:
        raise DataError(
            f"{name} gave an answer of shape {rows.shape} for a batch of {number} images: (images, classes) is needed, or "
            "(images,) for the second of two classes."
        )
    return np.column_stack([1 - rows, rows]) if rows.ndim == 1 else rows
