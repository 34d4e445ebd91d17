"""How long trainings, and what is measured after them, will take: from a timed step and a few timed looks at images."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from crossgraft.data import Dataset
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Piece, Reporter
from crossgraft.records import PlanRecord
from crossgraft.runs import RunDirectory
from crossgraft.tune.jobs import is_trained
from crossgraft.tune.measuring.look_cost import count_looks, num_looks_after, seconds_per_look
from crossgraft.tune.parts import FoldRows, TuningRows
from crossgraft.tune.planning.grid import GridPoint, GridTraining
from crossgraft.tune.planning.preparation import Preparation
from crossgraft.words.formatting import count, counted

TRAINING, MEASURING, NETWORKS = "training", "measuring", "networks"
"""Kinds of pieces; the last two are parts of the work, too, and each training is one by its name."""


def foresee(prepared: Preparation, plan: PlanRecord, *, run: RunDirectory | None, reporter: Reporter) -> None:
    """Say how long all trainings of one model will take, with what comes after them.

    Without a time in the plan nothing is said; what an earlier attempt has done counts nothing.
    """
    if not reporter.wants_forecast or plan.expected_seconds is None:
        return
    pieces = training_pieces(prepared.request.points, prepared.rows, plan, look=seconds_of_look(prepared))
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
    device: str,
    num_threads: int,
    reporter: Reporter,
) -> None:
    """Say how long it will take to measure the networks between two; arguments as in ``count_looks`` and ``interpolate``."""
    if not reporter.wants_forecast:
        return
    number = count_looks(parts, alphas, estimates=estimates)
    network = copy.deepcopy(end)
    look = seconds_per_look(network, dataset, parts.train, number=number, device=device, num_threads=num_threads)
    words = f"{counted(len(alphas), 'network')} × {counted(len(parts.val) + len(parts.test), 'image')} of val and test"
    reporter.expect([Piece((NETWORKS,), look * number, NETWORKS)], words)


def seconds_of_look(prepared: Preparation) -> float:
    """Seconds to look at one image with the network before training; the images are of those that are trained with."""
    parts = prepared.rows.parts[0]
    return seconds_per_look(
        prepared.new_classifier(),
        prepared.rows.dataset,
        parts.train,
        number=num_looks_after(parts),
        device=prepared.settings.device,
        num_threads=prepared.num_threads,
    )


def training_pieces(points: Sequence[GridPoint], rows: TuningRows, plan: PlanRecord, *, look: float) -> list[Piece]:
    """Every point of the grid on every fold, then all that is measured; ``look`` is in seconds an image."""
    epochs = [int(point.get("epochs", plan.epochs)) for point in points]
    of_epoch = (plan.expected_seconds or 0.0) / (sum(epochs) * len(rows.parts))
    trainings = [
        Piece((GridTraining(parts.fold, point).name,), of_epoch * number, TRAINING)
        for parts in rows.parts
        for point, number in zip(points, epochs, strict=True)
    ]
    looks = sum(map(num_looks_after, rows.parts))
    return [*trainings, Piece((MEASURING,), look * looks, MEASURING)]


def trainings_in_words(plan: PlanRecord) -> str:
    """What is trained, and that it is measured."""
    several = f"{counted(plan.num_jobs, 'training')} of " if plan.num_jobs > 1 else ""
    steps = (
        f"{counted(plan.epochs, 'epoch')} × {counted(plan.steps_per_epoch, 'step')} of {count(plan.batch_size)} images"
    )
    return f"{several}{steps}, then val and test"
