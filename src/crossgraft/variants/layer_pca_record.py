"""Principal components of a layer in several fine-tunings."""

from __future__ import annotations

from pydantic import Field, model_validator

from crossgraft.records.base import Count, Record, Share


class LayerPcaPanel(Record):
    """One variant, along the first two principal components of its own."""

    variant: str
    points: list[tuple[float, float]] = Field(default=[], description="One per image that is drawn.")
    shares: tuple[Share, Share] | None = Field(default=None, description="Of the variance, along each of the two.")
    reason: str | None = Field(default=None, description="Why there are none.")


class LayerPcaRecord(Record):
    """Pooled features of the test images in one layer, in every variant of one seed."""

    layer: str = Field(description="Its name in the network.")
    seed: int
    num_images: Count = Field(description="Images that components were fitted to; at most 300 of them are drawn.")
    classes: list[Count] = Field(description="Class of each image that is drawn.")
    class_names: list[str]
    panels: list[LayerPcaPanel]

    @model_validator(mode="after")
    def _one_point_per_image(self) -> LayerPcaRecord:
        for panel in self.panels:
            if panel.reason is None and len(panel.points) != len(self.classes):
                raise ValueError(f"{len(panel.points)} points of {panel.variant} for {len(self.classes)} images")
        if any(each >= len(self.class_names) for each in self.classes):
            raise ValueError("a class has no name")
        return self
