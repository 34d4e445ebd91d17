"""What was measured of features, attention and filters, as plain rows that a report shows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from crossgraft.errors import NotApplicable
from crossgraft.geometry._density import density_on, grid_around
from crossgraft.geometry.attention_map import TOP_MASS, AttentionMaps, attention_overlap
from crossgraft.geometry.feature_map import FeatureMap
from crossgraft.geometry.filters import FirstLayerFilters, pattern_of
from crossgraft.geometry.maps_record import (
    AttentionRecord,
    AttentionRow,
    FeatureMapRecord,
    FilterRow,
    FiltersRecord,
    MappedNetworkRow,
    TsneRecord,
    TsneRow,
)
from crossgraft.geometry.tsne_map import TsneMap
from crossgraft.statistics.exact_tests import mean_interval

MOST_POINTS = 300
"""Images that are drawn of a map, evenly spread over all of them."""
_MOST_FILTERS, _FEWEST_FILTERS, _MOST_CELLS = 24, 6, 1500  # what is drawn of each network
_GRID = 48
_DIGITS = 5
Matrix = Float[np.ndarray, "rows columns"]


def feature_map_record(found: FeatureMap, *, images: str) -> FeatureMapRecord:
    """Points and densities on one grid; ``images`` says what the images are."""
    xs, ys = (
        np.linspace(axis[0], axis[-1], _GRID)
        for axis in grid_around(*(each.points for each in found.networks.values()))
    )
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


def attention_record(
    found: Mapping[str, AttentionMaps], *, reference: str, images: str, drawn: Sequence[int]
) -> AttentionRecord:
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
