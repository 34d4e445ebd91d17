"""What was measured of weights and bodies, as plain rows that a report shows."""

from __future__ import annotations

import math
from collections.abc import Mapping

from crossgraft.errors import UsageError
from crossgraft.geometry.centre_quality import TaskAtCentre
from crossgraft.geometry.forgetting import Forgetting
from crossgraft.geometry.interpolation_path import InterpolationPath
from crossgraft.geometry.parameter_distance import CentreDistances, ParameterDistance
from crossgraft.geometry.record import (
    CentreTaskRow,
    DistanceRow,
    ForgettingRecord,
    InterpolationPathRecord,
    ParameterDistanceRecord,
    PathPointRow,
    ProbeRow,
    SharpnessRecord,
    SharpnessRow,
    WeightDistance,
)
from crossgraft.geometry.sharpness import Sharpness
from crossgraft.geometry.weight_interpolation import BatchNormRule


def sharpness_record(
    one_step: Mapping[str, Sharpness],
    many_steps: Mapping[str, Sharpness],
    per_batch: Mapping[str, Sharpness] | None = None,
    *,
    batch_size: int,
    sums_labels: bool = False,
) -> SharpnessRecord:
    """Rows of the same networks on the same images.

    Raises:
        UsageError: There is no network, or radii differ.
    """
    if not one_step or one_step.keys() != many_steps.keys():
        raise UsageError("Sharpness of one step and of several must be of the same networks, at least one.")
    first, several = next(iter(one_step.values())), next(iter(many_steps.values()))
    if any(each.rho != first.rho for each in (*one_step.values(), *many_steps.values())):
        raise UsageError("Sharpness can be compared at one radius alone; these have several.")
    rows = [
        SharpnessRow(
            network=name,
            loss=each.loss,
            one_step=each.value,
            many_steps=many_steps[name].value,
            per_batch=None if per_batch is None else per_batch[name].value,
            first_order=each.first_order,
        )
        for name, each in one_step.items()
    ]
    return SharpnessRecord(
        rho=first.rho,
        steps=several.steps,
        batch_size=batch_size,
        num_images=first.num_images,
        sums_labels=sums_labels,
        rows=rows,
    )


def distance_record(
    distances: CentreDistances,
    *,
    start: str | None,
    tasks: Mapping[str, TaskAtCentre] | None = None,
    batch_norm: BatchNormRule = "estimate",
) -> ParameterDistanceRecord:
    """Distances of runs, and what their centre is good for where tasks were measured."""
    rows = [
        DistanceRow(network=name, to_start=_weights(distances.to_start.get(name)), to_centre=_weights(each))
        for name, each in distances.to_centre.items()
    ]
    found = [
        CentreTaskRow(
            task=name,
            own=each.own.value,
            own_low=each.own.low,
            own_high=each.own.high,
            centre=each.centre.value,
            centre_low=each.centre.low,
            centre_high=each.centre.high,
            accuracy_change=each.accuracy_change.value,
            change_low=each.accuracy_change.low,
            change_high=each.accuracy_change.high,
            no_interval_reason=next((row.note for row in (each.own, each.centre) if row.low is None), None),
        )
        for name, each in (tasks or {}).items()
    ]
    return ParameterDistanceRecord(
        start=start,
        num_weights=next(iter(distances.to_centre.values())).num_weights,
        rows=rows,
        centre_to_start=_weights(distances.centre_to_start),
        metric=next((each.own.metric for each in (tasks or {}).values()), ""),
        batch_norm=batch_norm if found else None,
        tasks=found,
    )


def path_record(path: InterpolationPath, *, start: str, end: str) -> InterpolationPathRecord:
    """The line from ``start`` to ``end``, by their names."""
    points = [
        PathPointRow(alpha=each.alpha, loss=each.loss, cka=each.cka, cka_debiased=each.cka_debiased)
        for each in path.points
    ]
    return InterpolationPathRecord(
        start=start,
        end=end,
        num_images=path.num_images,
        batch_norm=path.batch_norm,
        num_batch_norms=path.num_batch_norms,
        points=points,
    )


def forgetting_record(found: Forgetting, *, data: str) -> ForgettingRecord:
    """Probes of several bodies on the images called ``data``."""
    home = found.bodies[found.reference].accuracy
    rows = [
        ProbeRow(
            network=name,
            accuracy=each.accuracy.value,
            low=each.accuracy.low,
            high=each.accuracy.high,
            difference=None if each.difference is None else each.difference.value,
            difference_low=None if each.difference is None else each.difference.low,
            difference_high=None if each.difference is None else each.difference.high,
        )
        for name, each in found.bodies.items()
    ]
    return ForgettingRecord(
        data=data,
        reference=found.reference,
        num_train=found.num_train,
        num_test=home.num_images,
        num_groups=home.num_groups,
        majority=found.majority,
        rows=rows,
    )


def weight_distance(distance: ParameterDistance) -> WeightDistance:
    """One distance; relative is None where the reference weights are all 0."""
    relative = distance.relative if math.isfinite(distance.relative) else None
    return WeightDistance(l2=distance.l2, rms=distance.rms, relative=relative)


def _weights(distance: ParameterDistance | None) -> WeightDistance | None:
    return None if distance is None else weight_distance(distance)
