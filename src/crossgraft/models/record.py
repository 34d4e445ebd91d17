"""The pretrained models that a command used."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import Record

Role = Literal["candidate", "random weights"]


class PreprocessingRecord(Record):
    """How images became inputs of one model (see ``types.Preprocessing``)."""

    height_pixels: int
    width_pixels: int
    channels: int
    mean: list[float]
    std: list[float]
    interpolation: str
    resize_policy: str
    crop_fraction: float
    description: str


class ModelRecord(Record):
    """One backbone as it was used."""

    name: str
    role: Role
    architecture: str
    source: str = Field(description="timm, torchvision, checkpoint or factory.")
    family: str
    licence: str | None
    num_parameters: int
    num_features: int
    num_source_classes: int | None
    weights_fingerprint: str
    preprocessing: PreprocessingRecord
    feature_seconds: float | None = Field(default=None, description="None where extraction was not timed by itself.")
    features_from_cache: bool = False
