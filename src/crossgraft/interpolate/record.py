"""What lies between a pretrained and a fine-tuned network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord
from crossgraft.geometry.record import may_be_joined
from crossgraft.metrics.record import MetricRecord
from crossgraft.records.base import SCHEMA_VERSION, LooksRecord, Record, Reference


class InterpolationPoint(Record):
    """One network on the way from the start to the end."""

    alpha: float = Field(description="0: the start, 1: the end.")
    metrics: list[MetricRecord] = Field(description="Over all classes: first those of test, then those of val.")
    similarity: dict[str, float] = Field(
        description="How alike its features on test are to those of the pretrained network: 'cka', 'cka_debiased'; of a "
        "network with BatchNorm with the endings '_adapted' and '_untouched', too, as in the record of a fine-tuning."
    )
    parameter_distance: float = Field(
        description="Euclidean distance of the weights in front of the head to the pretrained ones."
    )

    def metric(self, name: str, *, split: str = "test") -> MetricRecord | None:
        """The metric called ``name`` on the rows of ``split``."""
        return next((row for row in self.metrics if row.metric == name and row.split == split), None)


class InterpolationRecord(Record):
    """The curve from the start (pretrained) to the end (fine-tuned)."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["interpolation"] = "interpolation"
    model: str = Field(description="Name of the pretrained network.")
    dataset: str
    start: str = Field(description="What the network at alpha 0 is, in words.")
    points: list[InterpolationPoint] = Field(description="In the order of alpha.")
    primary_metric: str
    picked_alpha: float | None = Field(description="Picked on val; None where val says nothing.")
    picked_by: str = Field(description="The rule that picked it, or why there is none.")
    batch_norm: Literal["estimate", "mix"] = Field(
        description="Whether statistics of BatchNorm between the ends were estimated on training images, or mixed."
    )
    num_batch_norms: int = Field(description="Layers with such statistics.")
    seconds: float
    has_probe: bool | None = Field(
        default=None, description="Whether the head at alpha 0 is a linear probe, or that of the end; None in a comparison."
    )
    images: DatasetRecord | None = Field(default=None, description="The data; None in a comparison, which describes them itself.")
    leakage: str | None = Field(default=None, description="What is known of patients in several parts; None in a comparison.")
    num_shared_groups: int = Field(default=0, description="Groups with images in more than one part.")
    looks: LooksRecord | None = Field(
        default=None, description="How often these test images were looked at; None where that was not counted."
    )
    references: list[Reference] = []

    def is_joined(self, place: int, kind: str) -> bool:
        """Whether the networks between the point at ``place`` and the next may be taken to lie between the two.

        They may not where a CKA is missing or changes by more than ``LARGEST_STEP``, nor at an end of the way where statistics of
        BatchNorm were estimated: that end has its own, and no network near it has.

        Args:
            place: From 0.
            kind: Name of a similarity, for example ``cka_debiased``.
        """
        here, there = self.points[place : place + 2]
        values = (here.similarity.get(kind), there.similarity.get(kind))
        has_jumps = self.batch_norm == "estimate" and self.num_batch_norms > 0
        return may_be_joined((here.alpha, there.alpha), values, has_jumps=has_jumps)

    @property
    def picked(self) -> InterpolationPoint | None:
        """The point that was picked on val."""
        return next((point for point in self.points if point.alpha == self.picked_alpha), None)


def curve_of(records: Sequence[InterpolationRecord], kind: str, metric: str) -> list[tuple[float, float]]:
    """The mean over seeds of the similarity called ``kind`` and of the metric at each α."""
    curve: list[tuple[float, float]] = []
    for alpha in [point.alpha for point in records[0].points] if records else []:
        points = [next(point for point in record.points if point.alpha == alpha) for record in records]
        alike = [point.similarity.get(kind, math.nan) for point in points]
        rows = [point.metric(metric) for point in points]
        values = [math.nan if row is None or row.value is None else row.value for row in rows]
        curve.append((sum(alike) / len(alike), sum(values) / len(values)))
    return curve


def joined_in(records: Sequence[InterpolationRecord], kind: str) -> list[bool]:
    """Whether each point may be joined to the next, in every seed."""
    steps = range(len(records[0].points) - 1) if records else ()
    return [all(record.is_joined(place, kind) for record in records) for place in steps]
