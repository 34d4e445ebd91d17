"""How long trainings, and what is measured after them, will take: from a timed step and a few timed looks."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data import Dataset
from crossgraft.errors import CrossgraftError
from crossgraft.features.extract import seconds_a_row
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Piece, Reporter, TypicalClock
from crossgraft.running.run_directory import RunDirectory
from crossgraft.seeding import generator
from crossgraft.tune.feed.images import TrainingImages
from crossgraft.tune.jobs import is_trained
from crossgraft.tune.measuring.evaluation import FoldPredictions, evaluate_alone, logits_of
from crossgraft.tune.measuring.logits import BATCH_SIZE
from crossgraft.tune.measuring.thresholds import fit_temperature
from crossgraft.tune.parts import FoldRows, TuningRows
from crossgraft.tune.planning.choices import GridPoint, GridTraining, first_factor, further_factors
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.tune.record import PlanRecord
from crossgraft.words.formatting import count, counted

TRAINING, MEASURING, METRICS, NETWORKS = "training", "measuring", "metrics", "networks"
"""Kinds of pieces; all but the first are parts of the work, too, and each training is one by its name."""
_USUAL_FURTHER = 2
"""Trainings that ``--keep`` usually takes after the first."""


def foresee(prepared: Preparation, plan: PlanRecord, *, run: RunDirectory | None, reporter: Reporter) -> None:
    """Say how long all trainings of one model will take, with what comes after them.

    Without a time in the plan nothing is said; what an earlier attempt has done counts nothing.
    """
    if not reporter.wants_forecast or plan.expected_seconds is None:
        return
    cost, adapts = cost_of_measuring(prepared), prepared.compares_adapted
    pieces = training_pieces(prepared.request.points, prepared.rows, plan, cost, adapts=adapts)
    if run is not None:
        pieces = [piece for piece in pieces if not is_trained(run, piece.place[-1])]
    reporter.expect(pieces, trainings_in_words(plan), at_most=prepared.settings.patience is not None)


def foresee_networks(
    end: Classifier,
    dataset: Dataset,
    parts: FoldRows,
    *,
    alphas: Sequence[float],
    estimates: bool,
    adapts: bool,
    device: str,
    num_threads: int,
    reporter: Reporter,
) -> None:
    """Say how long it will take to measure the networks between two; arguments as in ``count_looks`` and ``interpolate``."""
    if not reporter.wants_forecast:
        return
    number = count_looks(parts, alphas, estimates=estimates, adapts=adapts)
    end = copy.deepcopy(end)
    cost = measure_cost(end, dataset, parts, number=number, device=device, num_threads=num_threads)
    seconds = cost.look * number + cost.metrics * len(alphas)
    words = f"{counted(len(alphas), 'network')} × {counted(len(parts.val) + len(parts.test), 'image')} of val and test"
    reporter.expect([Piece((NETWORKS,), seconds, NETWORKS)], words)


def cost_of_measuring(prepared: Preparation, *, further_looks: int = 0) -> MeasuringCost:
    """What it takes to measure a network, from looks of the one before training.

    Args:
        prepared: What is to be trained.
        further_looks: Looks that are to come beyond those after this training; the more, the more images are timed.
    """
    parts = prepared.rows.parts[0]
    return measure_cost(
        prepared.new_classifier(),
        prepared.rows.dataset,
        parts,
        number=num_looks_after(parts, adapts=prepared.compares_adapted) + further_looks,
        device=prepared.settings.device,
        num_threads=prepared.num_threads,
    )


def seconds_of_measuring(prepared: Preparation) -> float:
    """What all networks that are trained cost beside their training: looks at images, and metrics."""
    cost, adapts = cost_of_measuring(prepared), prepared.compares_adapted
    looks = sum(
        num_looks_after(parts, adapts=adapts) + (num_looks_to_adapt(parts) if adapts else 0) for parts in prepared.rows.parts
    )
    return cost.look * looks + cost.metrics * len(prepared.rows.parts)


def training_pieces(
    points: Sequence[GridPoint], rows: TuningRows, plan: PlanRecord, cost: MeasuringCost, *, adapts: bool
) -> list[Piece]:
    """Every point of the grid on every fold, then all that is measured.

    Args:
        points: Points of the grid.
        rows: Rows of all folds.
        plan: Plan with the time of all trainings.
        cost: Cost of looking at images.
        adapts: Whether statistics of BatchNorm are estimated on the training images of each fold, by its first training.
    """
    epochs = [int(point.get("epochs", plan.epochs)) for point in points]
    of_epoch = (plan.expected_seconds or 0.0) / (sum(epochs) * plan.num_jobs / len(points))
    trainings: list[Piece] = []
    for parts in rows.parts:
        before = cost.look * num_looks_to_adapt(parts) if adapts else 0.0
        for point, number in zip(points, epochs, strict=True):
            training = GridTraining(parts.fold, first_factor(point) if plan.seeks_factor else point, parts.domain)
            trainings.append(Piece((training.name,), before + of_epoch * number, TRAINING))
            before = 0.0
            if plan.seeks_factor:
                trainings.append(Piece((further_factors(training),), _USUAL_FURTHER * of_epoch * number, TRAINING))
    looks = sum(num_looks_after(parts, adapts=adapts) for parts in rows.parts)
    metrics = Piece((METRICS,), cost.metrics * len(rows.parts), METRICS)
    return [*trainings, Piece((MEASURING,), cost.look * looks, MEASURING), metrics]


def trainings_in_words(plan: PlanRecord) -> str:
    """What is trained, and that it is measured."""
    several = f"{counted(plan.num_jobs, 'training')} of " if plan.num_jobs > 1 else ""
    several = f"at most {several}" if plan.seeks_factor else several
    steps = f"{counted(plan.epochs, 'epoch')} × {counted(plan.steps_per_epoch, 'step')} of {count(plan.batch_size)} images"
    return f"{several}{steps}, then val and test"


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
    rows = parts.train

    def look(first: int) -> object:
        images = TrainingImages(dataset.take(rows[:first]), classifier.preprocessing, num_threads=num_threads)
        return logits_of(classifier, images, device=device)

    seconds = seconds_a_row(look, most=min(len(rows), BATCH_SIZE), num_rows=number) if len(rows) else 0.0
    return MeasuringCost(seconds, _seconds_of_metrics(dataset, parts, num_outputs=classifier.num_outputs))


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
