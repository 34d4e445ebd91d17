"""What it takes to measure a classifier: some images are looked at and timed, and metrics are computed of made-up logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data import Dataset
from crossgraft.errors import CrossgraftError
from crossgraft.features.extract import seconds_a_row
from crossgraft.models.classifier import Classifier
from crossgraft.progress import TypicalClock
from crossgraft.seeding import generator
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.measuring.evaluation import FoldPredictions, evaluate_alone, logits_of
from crossgraft.tune.measuring.thresholds import fit_temperature
from crossgraft.tune.parts import BATCH_SIZE, FoldRows

_ESTIMATING = 1.5
"""A look of BatchNorm in train mode takes so many of others."""
_PASSES_OVER_TEST = 3
"""Predictions, and features before and after."""


class MeasuringCost(NamedTuple):
    """Expected seconds.

    Attributes:
        look: Time of reading, preparing and looking at one image.
        metrics: Time of all metrics of one network.
    """

    look: float
    metrics: float


def measure_cost(
    classifier: Classifier, dataset: Dataset, parts: FoldRows, *, number: int, device: str, num_threads: int
) -> MeasuringCost:
    """Look at a few images for training and time it; test is neither looked at nor its labels.

    Args:
        classifier: Network of its own, which is moved to the device.
        dataset: Images.
        parts: Rows of train, val and test.
        number: Number of looks that are to come; the more, the more images are timed.
        device: Where the network will run.
        num_threads: Threads that read images.
    """
    look = _seconds_per_look(classifier, dataset, parts.train, number=number, device=device, num_threads=num_threads)
    return MeasuringCost(look, _seconds_of_metrics(dataset, parts, num_outputs=classifier.num_outputs))


def num_looks_after(parts: FoldRows, *, adapts: bool) -> int:
    """How many images are looked at once a network is trained.

    Args:
        parts: Rows of train, val and test.
        adapts: Whether features are also compared with those under BatchNorm statistics of the training images.
    """
    return len(parts.val) + (_PASSES_OVER_TEST + adapts) * len(parts.test)


def num_looks_to_adapt(parts: FoldRows) -> int:
    """How many looks give these statistics, once for all trainings of a fold, and the features of val under them."""
    return round(_ESTIMATING * len(parts.train)) + len(parts.val)


def count_looks(parts: FoldRows, alphas: Sequence[float], *, estimates: bool, adapts: bool) -> int:
    """How many looks at an image it takes to measure the networks between two.

    Args:
        parts: Rows of train, val and test.
        alphas: Places of the networks.
        estimates: Whether statistics of BatchNorm are estimated on the training rows for networks that are no end.
        adapts: As in ``num_looks_after``; those statistics are estimated once.
    """
    estimated = (sum(0 < alpha < 1 for alpha in alphas) if estimates else 0) + adapts
    return len(alphas) * num_looks_after(parts, adapts=adapts) + round(_ESTIMATING * estimated * len(parts.train))


def _seconds_per_look(
    classifier: Classifier, dataset: Dataset, rows: np.ndarray, *, number: int, device: str, num_threads: int
) -> float:
    """Arguments as in ``measure_cost``."""

    def look(first: int) -> object:
        images = TrainingImages(dataset.take(rows[:first]), classifier.preprocessing, num_threads=num_threads)
        return logits_of(classifier, images, device=device)

    return seconds_a_row(look, most=min(len(rows), BATCH_SIZE), num_rows=number) if len(rows) else 0.0


def _seconds_of_metrics(dataset: Dataset, parts: FoldRows, *, num_outputs: int) -> float:
    """From made-up logits and targets of rows for training, as many as there are in val and test."""
    rng = generator(0, "made-up logits")
    val, test = (parts.train[np.arange(len(part)) % len(parts.train)] for part in (parts.val, parts.test))
    of_val, of_test = (rng.standard_normal((len(part), num_outputs), dtype=np.float32) for part in (val, test))
    now = TypicalClock()
    start = now()
    try:
        temperature = fit_temperature(of_val, dataset.targets[val], task=dataset.task) if len(val) else None
        predictions = FoldPredictions(FoldRows(parts.train, val, test), of_val, of_test, temperature, [])
        evaluate_alone(predictions, dataset, task=dataset.task)
    except CrossgraftError:
        return 0.0  # if the metrics cannot be computed, that is said when they are
    return now() - start
