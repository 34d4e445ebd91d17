"""Pictures of networks: features in a plane, attention, filters of the first layer."""

from __future__ import annotations

from pydantic import Field

from crossgraft.records.base import Count, Record, Share

Point = tuple[float, float]


class MappedNetworkRow(Record):
    """One network in the plane of all."""

    network: str
    points: list[Point] = Field(description="One per image that is drawn.")
    density: list[list[float]] | None = Field(
        description="Rows of a grid over the whole plane, lowest first, in shares of the largest; None where there is none."
    )
    distance: float = Field(description="Of centroids in the plane, in units of the features.")
    relative_distance: float = Field(
        description="Of centroids in all dimensions, over the RMS radius of the reference."
    )
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
    attention: list[list[list[float]]] = Field(
        description="Of each image that is drawn, rows from the top, from 0 to 1."
    )
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
    patterns: list[list[list[float]]] = Field(
        description="Of the first filters, rows from the top, largest magnitude 1."
    )
    r2: list[float | None] = Field(description="Of the best Gabor fit of each of them; None of a flat one.")
    gabor_likeness: float | None = Field(description="Mean over all filters that are not flat.")
    random_likeness: float | None = Field(description="The same of random filters of this size.")
    num_flat: Count
    reason: str | None = Field(description="Reason why there are no fits.")


class FiltersRecord(Record):
    """First-layer filters of several networks."""

    networks: list[FilterRow]
