"""A saved model looks at images: logits, probabilities, decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.metrics.record import ThresholdRecord
from crossgraft.tasks import DEFAULT_THRESHOLD, recorded_task
from crossgraft.tune.predictions import NO_LABEL
from crossgraft.tune.saving.record import SavedModelRecord
from crossgraft.types import RecordedTask


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
