"""How far weights lie from one another, from a start, and from the centre of several runs (Table 3 of RepSim).

Heads are left out, because tasks differ in them, and so are statistics of BatchNorm, which are no parameters.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from crossgraft.data import Dataset
from crossgraft.errors import DataError, UsageError, nearest_names
from crossgraft.features.passes import collect, run_pass
from crossgraft.geometry._inputs import BATCH_SIZE, Network, NetworkImages, module_of, shape_in_words, weight_of
from crossgraft.geometry.batch_norm import estimate_statistics, moved_batch_norms
from crossgraft.geometry.record import BatchNormRule, WeightDistance
from crossgraft.metrics import MetricRow, accuracy_difference, evaluate_predictions
from crossgraft.models import Backbone
from crossgraft.models.classifier import Classifier
from crossgraft.models.penultimate import linear_heads
from crossgraft.progress import Reporter
from crossgraft.records.base import Count
from crossgraft.statistics import Estimate

_NetworkT = TypeVar("_NetworkT", bound=nn.Module)


class ParameterDistance(WeightDistance):
    """How far the weights of one network lie from another point."""

    num_weights: Count = Field(description="Numbers that were compared.")


class CentreDistances(NamedTuple):
    """Several runs and the mean of their weights.

    Attributes:
        to_centre: Run → distance to the centre; ``relative`` over the norm of the start, without one over that of the centre.
        to_start: Run → distance to the start; empty without one.
        centre_to_start: Distance of the centre itself to the start; None without one.
    """

    to_centre: dict[str, ParameterDistance]
    to_start: dict[str, ParameterDistance]
    centre_to_start: ParameterDistance | None


def parameter_distance(network: Network, reference: Network) -> ParameterDistance:
    """Distance of the weights in front of the head, summed in float64.

    Args:
        network: Classifier, backbone or any module.
        reference: The same architecture, for example the start of a fine-tuning.

    Raises:
        UsageError: The networks are not built alike; the message names the first weight that differs, and the nearest.
        DataError: A weight is NaN or infinite.

    Cost: a pass over the weights.
    """
    ours, theirs = body_parameters(network), body_parameters(reference)
    _refuse_other_weights(ours, theirs)
    return _distance(ours, theirs, theirs)


def distances_to_centre(runs: Mapping[str, Network], start: Network | None = None) -> CentreDistances:
    """Distance of each run to the mean of the weights of all runs, and to what they started from.

    Args:
        runs: Name → network; the same method on several tasks, whose heads may differ.
        start: The pretrained network.

    Raises:
        UsageError: There are fewer than two runs, or networks are not built alike.
        DataError: A weight is NaN or infinite.

    Cost: a pass over the weights of each run, and the centre in float64.

    Source: Table 3 of RepSim, which does not say what is left out.
    """
    bodies = {name: body_parameters(run) for name, run in runs.items()}
    centre = _mean(bodies)
    origin = None if start is None else body_parameters(start)
    if origin is not None:
        _refuse_other_weights(next(iter(bodies.values())), origin)
    norm_of = centre if origin is None else origin
    return CentreDistances(
        to_centre={name: _distance(body, centre, norm_of) for name, body in bodies.items()},
        to_start={} if origin is None else {name: _distance(body, origin, origin) for name, body in bodies.items()},
        centre_to_start=None if origin is None else _distance(centre, origin, origin),
    )


def with_body_at_centre(network: _NetworkT, runs: Mapping[str, Network]) -> _NetworkT:
    """A copy of ``network`` in eval mode, whose weights in front of the head are the mean of ``runs``; head and buffers stay.

    Statistics of BatchNorm belong to features that the centre does not have: see ``with_estimated_statistics``.

    Raises:
        UsageError: There are fewer than two runs, or networks are not built alike.
        DataError: A weight is NaN or infinite.
    """
    centre = _mean({name: body_parameters(run) for name, run in runs.items()})
    twin = copy.deepcopy(network).eval()
    own = body_parameters(twin)
    _refuse_other_weights(own, centre)
    with torch.no_grad():
        for name, weight in own.items():
            weight.copy_(centre[name])
    return twin


def body_parameters(network: Network) -> dict[str, Tensor]:
    """Floating parameters in front of the head, by name.

    The head of a plain module is what its ``get_classifier`` gives, as in timm; without that all its parameters count.
    """
    if isinstance(network, Classifier):
        return _floating(network.body)
    module = module_of(network)
    heads = [module.get_submodule(name) for name in linear_heads(module)]
    if isinstance(network, Backbone) and network.linear_head is not None:
        heads.append(network.linear_head)
    in_heads = {id(value) for head in heads for value in head.parameters()}
    named = dict(module.named_parameters())
    return {name: value for name, value in _floating(module).items() if id(named[name]) not in in_heads}


def _floating(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in module.named_parameters() if value.is_floating_point()}


def _mean(bodies: Mapping[str, Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """In float64 on the CPU."""
    if len(bodies) < 2:
        raise UsageError(f"A centre needs at least two runs; there {'is one' if bodies else 'are none'}.")
    first = next(iter(bodies.values()))
    for body in bodies.values():
        _refuse_other_weights(body, first)
    return {name: torch.stack([body[name].cpu().double() for body in bodies.values()]).mean(0) for name in first}


def _distance(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor], norm_of: Mapping[str, Tensor]) -> ParameterDistance:
    """‖ours − theirs‖, and relative to ‖norm_of‖."""
    number = sum(value.numel() for value in ours.values())
    if number == 0:
        raise UsageError("There are no weights in front of the head, so that nothing can be compared.")
    squares = torch.stack(
        [(value.cpu().double() - theirs[name].cpu().double()).square().sum() for name, value in ours.items()]
    ).sum()
    norm = math.sqrt(sum(float(value.cpu().double().square().sum()) for value in norm_of.values()))
    if not bool(torch.isfinite(squares)) or not math.isfinite(norm):
        bad = [name for name in ours if not all(weights[name].isfinite().all() for weights in (ours, theirs, norm_of))]
        raise DataError(
            f"{', '.join(bad[:1]) or 'A layer'} holds NaN, infinite or huge weights. Train again, or restore the file."
        )
    l2 = float(squares.sqrt())
    relative = l2 / norm if norm > 0 else None
    return ParameterDistance(l2=l2, rms=l2 / math.sqrt(number), relative=relative, num_weights=number)


def _refuse_other_weights(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> None:
    differing = [name for name in {**ours, **theirs} if shape_in_words(ours, name) != shape_in_words(theirs, name)]
    if not differing:
        return
    name = differing[0]
    names: Sequence[str] = nearest_names(name, theirs if name in ours else ours) if name not in ours or name not in theirs else ()
    near = f" Nearest there: {', '.join(names)}." if names else ""
    shape, other_shape = (shape_in_words(weights, name) for weights in (ours, theirs))
    raise UsageError(
        f"The networks are of different architectures: {name} is {shape} in one and {other_shape} in the "
        f"other ({len(differing)} weights differ).{near} Compare networks that are built alike."
    )


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
    tasks: dict[str, TaskAtCentre] = {}
    stages = reporter or Reporter(quiet=True)
    with stages.stage("Measuring the centre under each head", total=len(runs), unit="tasks") as stage:
        for name, run in runs.items():
            tasks[name] = _compare(run, _centre_for(name, runs, train, batch_norm), test[name], batch_size)
            stage.advance()
    return tasks


def _centre_for(
    name: str, runs: Mapping[str, Classifier], train: Mapping[str, Dataset] | None, rule: BatchNormRule
) -> Classifier:
    centre = with_body_at_centre(runs[name], runs)
    others = [run for run in runs.values() if run is not runs[name]]
    moved = sorted({layer for run in others for layer in moved_batch_norms(runs[name].body, run.body)})
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
                stacked = torch.stack([getattr(run.get_submodule(layer), statistic).double() for run in runs.values()])
                getattr(centre.get_submodule(layer), statistic).copy_(stacked.mean(dim=0))
    return centre


def _compare(own: Classifier, centre: Classifier, images: Dataset, batch_size: int) -> TaskAtCentre:
    prepared = NetworkImages(images, own)
    probabilities = [_probabilities(network, prepared, images, batch_size) for network in (own, centre)]
    first, second = (_primary(predicted, images) for predicted in probabilities)
    right = [images.task.shares_right(images.task.decide(predicted), images.targets) for predicted in probabilities]
    return TaskAtCentre(first, second, accuracy_difference(right[1], right[0], images.groups))


def _probabilities(network: Classifier, prepared: NetworkImages, images: Dataset, batch_size: int) -> np.ndarray:
    passes = run_pass(network, prepared.batches(batch_size), like=weight_of(network), full_precision=True)
    return images.task.probabilities(collect(passes).float().numpy())


def _primary(probabilities: np.ndarray, images: Dataset) -> MetricRow:
    rows = evaluate_predictions(
        probabilities, images.targets, task=images.task, class_names=images.class_names, groups=images.groups
    )
    return next(row for row in rows if row.metric == images.task.primary_metric and row.class_name is None)
