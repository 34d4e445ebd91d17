"""A network as a record: plain, without absolute paths."""

from __future__ import annotations

from crossgraft.models import Backbone
from crossgraft.models.preprocessing import describe_preprocessing
from crossgraft.models.record import ModelRecord, Role


def describe_model(
    backbone: Backbone, role: Role, *, seconds: float | None = None, from_cache: bool = False
) -> ModelRecord:
    """One backbone as the report shows it."""
    return ModelRecord(
        name=backbone.name,
        role=role,
        architecture=backbone.architecture,
        source=backbone.source,
        family=backbone.family,
        licence=backbone.licence,
        num_parameters=backbone.num_parameters,
        num_features=backbone.num_features,
        num_source_classes=backbone.num_source_classes,
        weights_fingerprint=backbone.weights_fingerprint,
        preprocessing=describe_preprocessing(backbone.preprocessing),
        feature_seconds=seconds,
        features_from_cache=from_cache,
    )
