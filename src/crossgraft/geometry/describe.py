"""What was measured of weights and bodies, as plain rows that a report shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.geometry.attention_map import TOP_MASS, AttentionMaps, attention_overlap
from crossgraft.geometry.feature_map import FeatureMap, TsneMap, density_on, grid_around
from crossgraft.geometry.filters import FirstLayerFilters, pattern_of
from crossgraft.geometry.forgetting import Forgetting
from crossgraft.geometry.interpolation_path import BatchNormRule, InterpolationPath
from crossgraft.geometry.parameter_distance import CentreDistances, ParameterDistance, TaskAtCentre
from crossgraft.geometry.record import (
    AttentionRecord,
    AttentionRow,
    CentreTaskRow,
    DistanceRow,
    FeatureMapRecord,
    FilterRow,
    FiltersRecord,
    ForgettingRecord,
    InterpolationPathRecord,
    MappedNetworkRow,
    ParameterDistanceRecord,
    PathPointRow,
    ProbeRow,
    SharpnessRecord,
    SharpnessRow,
    TsneRecord,
    TsneRow,
    WeightDistance,
)
from crossgraft.geometry.sharpness import Sharpness
from crossgraft.statistics.exact_tests import mean_interval

MOST_POINTS = 300
"""Images that are drawn of a map, evenly spread over all of them."""
_MOST_FILTERS, _FEWEST_FILTERS, _MOST_CELLS = 24, 6, 1500  # what is drawn of each network
_GRID = 48
_DIGITS = 5
Matrix = Float[np.ndarray, "rows columns"]


def feature_map_record(found: FeatureMap, *, images: str) -> FeatureMapRecord:
    """Points and densities on one grid; ``images`` says what the images are."""
    xs, ys = (np.linspace(axis[0], axis[-1], _GRID) for axis in grid_around(*(each.points for each in found.networks.values())))
    rows: list[MappedNetworkRow] = []
    for name, each in found.networks.items():
        try:
            density = density_on(each.points, xs, ys)
            shares = _rounded(density / density.max(), 3)
        except NotApplicable:  # said beside the overlap, which has the same reason
            shares = None
        rows.append(
            MappedNetworkRow(
                network=name,
                points=_some(each.points),
                density=shares,
                distance=each.distance,
                relative_distance=each.relative_distance,
                overlap=None if each.overlap is None else min(each.overlap, 1.0),
                bhattacharyya=each.bhattacharyya,
                reason=each.reason,
            )
        )
    return FeatureMapRecord(
        reference=found.reference,
        num_images=len(next(iter(found.networks.values())).points),
        images=images,
        shares=found.shares,
        x_range=(float(xs[0]), float(xs[-1])),
        y_range=(float(ys[0]), float(ys[-1])),
        networks=rows,
    )


def tsne_record(found: Mapping[str, TsneMap], *, class_name: str, num_images: int, seed: int) -> TsneRecord:
    """Maps of the images of one class."""
    rows = [
        TsneRow(
            network=name,
            points=[] if each.points is None else _some(each.points),
            trustworthiness=each.trustworthiness,
            gap=each.gap,
            drawn_gap=each.drawn_gap,
            reason=each.reason,
        )
        for name, each in found.items()
    ]
    perplexity = next(iter(found.values())).perplexity
    return TsneRecord(class_name=class_name, num_images=num_images, perplexity=perplexity, seed=seed, networks=rows)


def attention_record(found: Mapping[str, AttentionMaps], *, reference: str, images: str, drawn: Sequence[int]) -> AttentionRecord:
    """Attention of several networks to the same images, of which those at ``drawn`` are shown."""
    home = found[reference]
    rows: list[AttentionRow] = []
    for name, each in found.items():
        overlaps = attention_overlap(each, home)
        mean = mean_interval(overlaps, limits=(0.0, 1.0))
        is_home = name == reference
        rows.append(
            AttentionRow(
                network=name,
                attention=[_rounded(_from_0_to_1(each.attention[row]), 3) for row in drawn],
                overlap=None if is_home else mean.mean,
                overlap_low=None if is_home else mean.low,
                overlap_high=None if is_home else mean.high,
                no_interval_reason=None if is_home else mean.reason,
                drawn_overlaps=[] if is_home else [float(overlaps[row]) for row in drawn],
            )
        )
    return AttentionRecord(
        reference=reference,
        images=images,
        layer=home.layer,
        asked=home.asked,
        is_rollout=home.is_rollout,
        top_mass=TOP_MASS,
        num_images=len(home.attention),
        drawn=list(drawn),
        networks=rows,
    )


def filters_record(found: Mapping[str, FirstLayerFilters]) -> FiltersRecord:
    """The first filters of each network as grey patterns, and the likeness of all."""
    return FiltersRecord(networks=[_filter_row(name, each) for name, each in found.items()])


def _filter_row(name: str, found: FirstLayerFilters) -> FilterRow:
    height, width = found.filters.shape[2:]
    most = max(_FEWEST_FILTERS, min(_MOST_FILTERS, _MOST_CELLS // (height * width)))
    patterns = [pattern_of(each) for each in found.filters[:most]]
    r2 = [] if found.r2 is None else [float(each) if math.isfinite(each) else None for each in found.r2[:most]]
    return FilterRow(
        network=name,
        layer=found.layer,
        num_filters=len(found.filters),
        height_pixels=height,
        width_pixels=width,
        patterns=[_rounded(each / (np.abs(each).max() or 1.0), 3) for each in patterns],
        r2=r2,
        gabor_likeness=found.gabor_likeness,
        random_likeness=found.random_likeness,
        num_flat=found.num_flat,
        reason=found.reason,
    )


def _from_0_to_1(matrix: Matrix) -> Matrix:
    """0 everywhere where all is the same."""
    span = float(matrix.max() - matrix.min())
    return (matrix - matrix.min()) / (span or 1.0)


def _some(points: Matrix) -> list[tuple[float, float]]:
    """At most ``MOST_POINTS``, with the digits that a figure shows."""
    chosen = points[np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int))]
    scale = float(np.abs(chosen).max()) or 1.0
    decimals = _DIGITS - 1 - math.floor(math.log10(scale))
    return [(round(float(x), decimals), round(float(y), decimals)) for x, y in chosen]


def _rounded(matrix: Matrix, decimals: int) -> list[list[float]]:
    return [[round(float(value), decimals) for value in row] for row in matrix]


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
        rho=first.rho, steps=several.steps, batch_size=batch_size, num_images=first.num_images, sums_labels=sums_labels, rows=rows
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
        PathPointRow(alpha=each.alpha, loss=each.loss, cka=each.cka, cka_debiased=each.cka_debiased) for each in path.points
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
