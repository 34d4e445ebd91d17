"""How networks lie to one another: sharpness, distances of weights, the way between two, and what a body still knows."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from jaxtyping import Float
from pydantic import Field

from crossgraft.records.base import Count, Record, Share

Point = tuple[float, float]
Matrix = Float[np.ndarray, "rows columns"]
BatchNormRule = Literal["estimate", "mix"]
"""What becomes of means and variances of BatchNorm between the ends."""
MOST_POINTS = 300
"""Images that are drawn of a map, evenly spread over all of them."""
_DIGITS = 5
LARGEST_STEP = 0.25
"""Largest change of a CKA from one measured network to the next that a line may cross: a quarter of its range."""
_ROUNDING = 1e-9


def drawn_points(points: Matrix) -> list[Point]:
    """At most ``MOST_POINTS``, with the digits that a figure shows."""
    chosen = points[np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int))]
    scale = float(np.abs(chosen).max()) or 1.0
    decimals = _DIGITS - 1 - math.floor(math.log10(scale))
    return [(round(float(x), decimals), round(float(y), decimals)) for x, y in chosen]


def drawn_cells(matrix: Matrix) -> list[list[float]]:
    """Shares of full colour, row by row."""
    return [[round(float(value), 3) for value in row] for row in matrix]


def may_be_joined(alphas: tuple[float, float], similarities: tuple[float | None, float | None], *, has_jumps: bool) -> bool:
    """Whether a line may join two neighbours on the way: not across a large or unknown change, nor at an end with a jump."""
    here, there = similarities
    if here is None or there is None or (has_jumps and (alphas[0] == 0 or alphas[1] == 1)):
        return False
    return abs(here - there) <= LARGEST_STEP + _ROUNDING


class MappedNetworkRow(Record):
    """One network in the plane of all."""

    network: str
    points: list[Point] = Field(description="One per image that is drawn.")
    density: list[list[float]] | None = Field(
        description="Rows of a grid over the whole plane, lowest first, in shares of the largest; None where there is none."
    )
    distance: float = Field(description="Of centroids in the plane, in units of the features.")
    relative_distance: float = Field(description="Of centroids in all dimensions, over the RMS radius of the reference.")
    overlap: Share | None = Field(description="Of densities in the plane with that of the reference.")
    bhattacharyya: Share | None
    reason: str | None = Field(description="Reason why there is no overlap.")


class FeatureMapRecord(Record):
    """Features of several networks along the first two principal components of their union."""

    reference: str
    num_images: Count
    images: str = Field(description="What the images are, in words: 'test images of BreastMNIST'.")
    shares: tuple[Share, Share] = Field(description="Of the variance of the union, along each axis.")
    x_range: Point = Field(description="Ends of the grid of densities.")
    y_range: Point
    networks: list[MappedNetworkRow]


class TsneRow(Record):
    """One network."""

    network: str
    points: list[Point]
    trustworthiness: float | None
    gap: float | None = Field(description="Silhouette of two clusters of the features.")
    drawn_gap: float | None = Field(description="The same in the plane.")
    reason: str | None = Field(description="Reason why there is no map.")


class TsneRecord(Record):
    """Images of one class as each network sees them."""

    class_name: str
    num_images: Count
    perplexity: float
    seed: int
    networks: list[TsneRow]


class AttentionRow(Record):
    """One network."""

    network: str
    attention: list[list[list[float]]] = Field(description="Of each image that is drawn, rows from the top, from 0 to 1.")
    overlap: Share | None = Field(description="Mean over images; None of the reference.")
    overlap_low: float | None
    overlap_high: float | None
    no_interval_reason: str | None = None
    drawn_overlaps: list[Share] = Field(default=[], description="Of each image that is drawn.")


class AttentionRecord(Record):
    """Where vision transformers look."""

    reference: str
    images: str = Field(description="What the images are, in words.")
    layer: str
    asked: str = Field(description="What asks: class token, or mean of patches.")
    is_rollout: bool
    top_mass: Share = Field(description="Share of attention that the compared patches hold.")
    num_images: Count = Field(description="Images that overlaps are means of.")
    drawn: list[Count] = Field(description="Numbers of the images that are drawn.")
    networks: list[AttentionRow]


class FilterRow(Record):
    """The first convolution of one network."""

    network: str
    layer: str
    num_filters: Count
    height_pixels: Count
    width_pixels: Count
    patterns: list[list[list[float]]] = Field(description="Of the first filters, rows from the top, largest magnitude 1.")
    r2: list[float | None] = Field(description="Of the best Gabor fit of each of them; None of a flat one.")
    gabor_likeness: float | None = Field(description="Mean over all filters that are not flat.")
    random_likeness: float | None = Field(description="The same of random filters of this size.")
    num_flat: Count
    reason: str | None = Field(description="Reason why there are no fits.")


class FiltersRecord(Record):
    """First-layer filters of several networks."""

    networks: list[FilterRow]


class SharpnessRow(Record):
    """One network."""

    network: str
    loss: float = Field(description="At its weights, mean over images.")
    one_step: float = Field(description="Rise of the loss after one step along the gradient.")
    many_steps: float = Field(description="Largest rise that several steps found.")
    per_batch: float | None = Field(description="Mean over images of the rise that each batch has for itself; one step.")
    first_order: float = Field(description="Radius times length of the gradient: the rise on a plane.")


class SharpnessRecord(Record):
    """Rise of the loss within a ball around the weights, of every network on the same images."""

    rho: float = Field(description="Radius of the ball.")
    steps: Count = Field(description="Steps of the column with several.")
    batch_size: Count
    num_images: Count
    sums_labels: bool = Field(description="Whether the loss is summed over several labels per image.")
    is_comparable: bool = Field(default=True, description="Whether all networks are built alike.")
    rows: list[SharpnessRow]


class WeightDistance(Record):
    """Distance between the weights in front of the head."""

    l2: float = Field(description="Euclidean.")
    rms: float = Field(description="Root mean square over weights.")
    relative: float | None = Field(description="Over the norm of the reference weights; None where that is 0.")


class PathPointRow(Record):
    """One network between two."""

    alpha: float = Field(description="0: the start, 1: the end.")
    loss: float
    cka: float | None = Field(description="To the features of the start; None where features do not vary.")
    cka_debiased: float | None


class InterpolationPathRecord(Record):
    """Loss and similarity on the straight line between two networks."""

    start: str
    end: str
    num_images: Count
    batch_norm: BatchNormRule
    num_batch_norms: Count = Field(description="Layers with other statistics at the two ends.")
    points: list[PathPointRow] = Field(description="In the order of alpha.")

    def is_joined(self, place: int) -> bool:
        """Whether a line may join the point at ``place`` (from 0) and the next, as in an ``InterpolationRecord``."""
        here, there = self.points[place : place + 2]
        has_jumps = self.batch_norm == "estimate" and self.num_batch_norms > 0
        return may_be_joined((here.alpha, there.alpha), (here.cka, there.cka), has_jumps=has_jumps)

    @property
    def between(self) -> dict[float, bool]:
        """Alpha strictly inside → whether both loss and CKA lie strictly between those of the ends, as Proposition 8 has it.

        The proposition promises some path with such networks, not that they lie on the straight line.
        """
        first, last = self.points[0], self.points[-1]
        return {
            point.alpha: _is_between(point.loss, first.loss, last.loss) and _is_between(point.cka, first.cka, last.cka)
            for point in self.points[1:-1]
        }


class ProbeRow(Record):
    """One body under a linear probe."""

    network: str
    accuracy: Share
    low: float
    high: float
    difference: float | None = Field(description="Accuracy minus that of the reference, image by image; None of itself.")
    difference_low: float | None
    difference_high: float | None


class ForgettingRecord(Record):
    """What several bodies know of other images."""

    data: str = Field(description="Name of the other images.")
    reference: str = Field(description="The body before fine-tuning.")
    num_train: Count
    num_test: Count
    num_groups: int | None = Field(description="Patients of the test images; None: taken as independent.")
    majority: Share = Field(description="Accuracy of always saying the commonest class.")
    rows: list[ProbeRow]


def _is_between(value: float | None, start: float | None, end: float | None) -> bool:
    return value is not None and start is not None and end is not None and min(start, end) < value < max(start, end)
