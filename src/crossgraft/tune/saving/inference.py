"""A saved model looks at images: logits, probabilities, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.metrics import decide
from crossgraft.records import SavedModelRecord
from crossgraft.tune.measuring.calibration import to_probabilities
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.types import Task


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
    """Two classes, one per image, are a question with a threshold."""
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
