"""What ``crossgraft compare --geometry centre`` writes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.geometry.record import WeightDistance
from crossgraft.records.base import SCHEMA_VERSION, Count, Record, Reference


class CentredNetwork(Record):
    """One of the networks."""

    label: str = Field(description="Its folder or file, or its place among those given.")
    name: str = Field(description="Name of the model.")
    task: str | None = Field(description="Name of the data that it was fine-tuned on; None: a pretrained network.")
    ways: list[str] = Field(description="Method and regularisers that it was fine-tuned by, in print.")
    weights_fingerprint: str
    start_fingerprint: str = Field(description="Of the pretrained weights that it was fine-tuned from.")
    to_centre: WeightDistance = Field(description="Relative to the length of the start, or of the centre where none is given.")
    to_start: WeightDistance | None = None


class CentreRecord(Record):
    """Distances of several networks to the mean of their weights."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["centre"] = "centre"
    networks: list[CentredNetwork] = Field(description="In the order in which they were given.")
    start: str | None = Field(description="Name of the pretrained network; None: not given.")
    centre_to_start: WeightDistance | None = None
    num_weights: Count = Field(description="Numbers in front of the head that are compared.")
    notes: list[str] = []
    references: list[Reference] = []
    seconds: float

    @property
    def mean_to_centre(self) -> float:
        """Mean Euclidean distance, the last row of the table."""
        return sum(each.to_centre.l2 for each in self.networks) / len(self.networks)
