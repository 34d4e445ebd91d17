"""How well the mean of the weights of several runs does under the head of each task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from crossgraft.data import Dataset
from crossgraft.errors import UsageError
from crossgraft.features.passes import collect, run_pass
from crossgraft.geometry._inputs import BATCH_SIZE, NetworkImages, weight_of
from crossgraft.geometry.batch_norm import estimate_statistics, moved_batch_norms
from crossgraft.geometry.parameter_distance import with_body_at_centre
from crossgraft.geometry.weight_interpolation import BatchNormRule
from crossgraft.metrics import MetricRow, accuracy_difference, evaluate_predictions
from crossgraft.models.classifier import Classifier
from crossgraft.progress import Reporter
from crossgraft.statistics import Estimate


@dataclass(frozen=True)
class TaskAtCentre:
    """One task.

    Attributes:
        own: Primary metric of its own network.
        centre: The same of the centre under its head.
        accuracy_change: Accuracy at the centre minus that of the own network on the same images, with an interval.
    """

    own: MetricRow
    centre: MetricRow
    accuracy_change: Estimate


def centre_quality(
    runs: Mapping[str, Classifier],
    test: Mapping[str, Dataset],
    *,
    train: Mapping[str, Dataset] | None = None,
    batch_norm: BatchNormRule = "estimate",
    batch_size: int = BATCH_SIZE,
    reporter: Reporter | None = None,
) -> dict[str, TaskAtCentre]:
    """Put the mean of all bodies under the head of each task, and measure it on the images of that task.

    Runs that lie close together leave their centre in a place that is good for all of them: the use of centrality that RepSim
    claims. No temperature and no threshold is fitted: the most probable class decides, of a label a probability of a half.

    Args:
        runs: Task → its network, all of one architecture.
        test: Task → its held-out images.
        train: Task → its training images; needed where statistics of BatchNorm are estimated.
        batch_norm: ``estimate``: on the training images of each task. ``mix``: the mean over runs.
        batch_size: Images at once.
        reporter: Reporter of progress.

    Raises:
        UsageError: Fewer than two runs, networks that are not built alike, or a task without the images that it needs.
        DataError: Too few images.

    Cost: two forward passes per test image, and two of the training images where statistics are estimated.

    Source: RepSim, section 4.3, which gives distances to the centre (Table 3) and no accuracy there.
    """
    if batch_norm not in ("estimate", "mix"):
        raise UsageError(f"batch_norm is estimate or mix, not {batch_norm!r}.")
    missing = [name for name in runs if name not in test]
    if missing:
        raise UsageError(f"There are no test images of {', '.join(missing)}. Give those of each task (test=).")
    found: dict[str, TaskAtCentre] = {}
    stages = reporter or Reporter(quiet=True)
    with stages.stage("Measuring the centre under each head", total=len(runs), unit="tasks") as stage:
        for name, run in runs.items():
            found[name] = _compare(run, _centre_for(name, runs, train, batch_norm), test[name], batch_size)
            stage.advance()
    return found


def _centre_for(
    name: str, runs: Mapping[str, Classifier], train: Mapping[str, Dataset] | None, rule: BatchNormRule
) -> Classifier:
    centre = with_body_at_centre(runs[name], runs)
    others = [run for run in runs.values() if run is not runs[name]]
    moved = sorted({layer for other in others for layer in moved_batch_norms(runs[name].body, other.body)})
    layers = [f"body.{layer}" for layer in moved]
    if not layers:
        return centre
    if rule == "estimate":
        if train is None or name not in train:
            raise UsageError(
                f"{len(layers)} BatchNorm layers have other statistics in each run. Give the training images of {name} (train=), "
                "or batch_norm='mix'."
            )
        estimate_statistics(layers, centre, NetworkImages(train[name], centre))
        return centre
    with torch.no_grad():
        for layer in layers:
            for statistic in ("running_mean", "running_var"):
                each = torch.stack([getattr(run.get_submodule(layer), statistic).double() for run in runs.values()])
                getattr(centre.get_submodule(layer), statistic).copy_(each.mean(dim=0))
    return centre


def _compare(own: Classifier, centre: Classifier, images: Dataset, batch_size: int) -> TaskAtCentre:
    prepared = NetworkImages(images, own)
    probabilities = [_probabilities(network, prepared, images, batch_size) for network in (own, centre)]
    first, second = (_primary(each, images) for each in probabilities)
    right = [images.task.shares_right(images.task.decide(each), images.targets) for each in probabilities]
    return TaskAtCentre(first, second, accuracy_difference(right[1], right[0], images.groups))


def _probabilities(network: Classifier, prepared: NetworkImages, images: Dataset, batch_size: int) -> np.ndarray:
    passes = run_pass(network, prepared.batches(batch_size), like=weight_of(network), full_precision=True)
    return images.task.probabilities(collect(passes).float().numpy())


def _primary(probabilities: np.ndarray, images: Dataset) -> MetricRow:
    rows = evaluate_predictions(
        probabilities, images.targets, task=images.task, class_names=images.class_names, groups=images.groups
    )
    return next(row for row in rows if row.metric == images.task.primary_metric and row.class_name is None)
