"""A saved model looks at images: logits, probabilities, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Float64

from crossgraft.errors import DataError
from crossgraft.features.batches import BatchLoader, ImageSource
from crossgraft.features.passes import collect
from crossgraft.metrics import decide
from crossgraft.models.classifier import Classifier
from crossgraft.models.device import explain_missing_operations
from crossgraft.progress import Reporter
from crossgraft.records import SavedModelRecord
from crossgraft.tune.measuring.calibration import to_probabilities
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.tune.saving.saved_model import logits_of_batches
from crossgraft.types import Task
from crossgraft.words.formatting import counted

BATCH_SIZE = 64
_NAMED_ROWS = 5


def compute_logits(
    classifier: Classifier, images: ImageSource, *, batch_size: int = BATCH_SIZE, reporter: Reporter
) -> Float32[np.ndarray, "num_images num_outputs"]:
    """Logits of every image, before the temperature; the next batch is prepared while the network looks at this one.

    Args:
        classifier: In eval mode, on any device.
        images: In a fixed order.
        batch_size: Images at once; halved when memory runs out. Another size can change the last digits of a float32.
        reporter: Told how far it is.

    Raises:
        DataError: Logits are NaN or infinite; the message names the images.
        OutOfMemoryError: A single image does not fit.
    """
    spans = [range(len(images))]
    loader = BatchLoader(images, classifier.preprocessing, spans, batch_size=batch_size, reporter=reporter)
    name = classifier.recipe.name
    title = f"Predicting {counted(len(images), 'image')} with {name}"
    with (
        reporter.stage(title, total=len(images), unit="images") as stage,
        explain_missing_operations(name, str(classifier.head.weight.device)),
    ):
        logits = collect(logits_of_batches(classifier, loader, on_images=stage.advance)).numpy()
    _refuse_not_finite(logits, images, name)
    return logits


def _refuse_not_finite(logits: np.ndarray, images: ImageSource, model: str) -> None:
    bad = np.flatnonzero(~np.isfinite(logits).all(axis=1))
    if bad.size:
        names = ", ".join(images.image_name(int(row)) for row in bad[:_NAMED_ROWS])
        more = f" and {bad.size - _NAMED_ROWS} more" if bad.size > _NAMED_ROWS else ""
        raise DataError(f"{model} gives NaN or infinite values for {names}{more}. Check these images and the weights.")


class Answers(NamedTuple):
    """What the model says of n images.

    Attributes:
        probabilities: (n, C), after the temperature.
        decisions: Names of the classes or labels that each image is decided for.
        certainty: (n,) the highest probability; with several labels an image the least distance of a probability from
            0.5, times two.
    """

    probabilities: Float64[np.ndarray, "num_images num_outputs"]
    decisions: list[list[str]]
    certainty: Float64[np.ndarray, " num_images"]


def answer(facts: SavedModelRecord, logits: Float[np.ndarray, "num_images num_outputs"]) -> Answers:
    """Probabilities and decisions by the temperature and the thresholds that are stored with the model."""
    task = task_of(facts)
    probabilities = to_probabilities(logits, task=task, temperature=facts.temperature)
    decided = decide(probabilities, task=task, thresholds=thresholds_of(facts))
    if task == "multi-label":
        decisions = [[facts.class_names[column] for column in np.flatnonzero(row)] for row in decided]
        certainty = np.abs(2 * probabilities - 1).min(axis=1)
    else:
        decisions = [[facts.class_names[int(index)]] for index in decided]
        certainty = probabilities.max(axis=1)
    return Answers(probabilities, decisions, certainty)


def task_of(facts: SavedModelRecord) -> Task:
    """Two classes, one an image, are a question with a threshold."""
    return "binary" if facts.task == "multi-class" and len(facts.class_names) == 2 else facts.task


def thresholds_of(facts: SavedModelRecord) -> Sequence[float] | None:
    """As ``decide`` takes them; None where the default rule of the task is meant."""
    known = {row.class_name: row.threshold for row in facts.thresholds if row.threshold is not None}
    task = task_of(facts)
    if task == "multi-class" or not known:
        return None
    asked = facts.class_names[-1:] if task == "binary" else facts.class_names
    return [known.get(name, 0.5) for name in asked]


def in_words(decision: Sequence[str]) -> str:
    """Names with semicolons between them, or that there is none."""
    return "; ".join(decision) or NO_LABEL
