"""Geometry of two models beside each other: where their weights and features lie, and what a body still knows."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.geometry.maps_record import AttentionRecord, FeatureMapRecord, FiltersRecord, TsneRecord
from crossgraft.geometry.record import ForgettingRecord, InterpolationPathRecord, SharpnessRecord, WeightDistance
from crossgraft.records.base import Count, Record

GeometryName = Literal[
    "feature_map", "parameter_distance", "interpolation_path", "sharpness", "filters", "attention", "tsne"
]


class WeightsApart(Record):
    """Weights of two of the models."""

    first: str = Field(description="Label of the reference.")
    second: str
    distance: WeightDistance
    num_weights: Count = Field(description="Numbers in front of the head that are compared.")


class ModelGeometry(Record):
    """What was asked for, by labels of the models; None where it does not apply, and ``notes`` say why."""

    asked: list[GeometryName]
    forgetting: ForgettingRecord | None = None
    feature_map: FeatureMapRecord | None = None
    parameter_distance: list[WeightsApart] = []
    interpolation_path: InterpolationPathRecord | None = None
    sharpness: SharpnessRecord | None = None
    filters: FiltersRecord | None = None
    attention: AttentionRecord | None = None
    source_attention: AttentionRecord | None = Field(default=None, description="The same for images of the source.")
    tsne: TsneRecord | None = None
    notes: dict[str, list[str]] = Field(default={}, description="Measure → what does not apply, and why.")
