"""What is known of domains that training never saw."""

from __future__ import annotations

from pydantic import Field

from crossgraft.metrics.record import MetricRecord
from crossgraft.records.base import Count, Record


class DomainMetricRecord(Record):
    """The primary metric, or a difference of two, with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    num_images: int = 0
    reason: str | None = Field(default=None, description="Why there is no value, or no interval.")
    note: str | None = Field(default=None, description="What it leaves out.")


class UnseenDomainRecord(Record):
    """One domain, and the training that never saw it."""

    domain: str
    num_train: Count
    num_val: Count
    num_unseen: Count = Field(description="Images of the domain that the model was tested on.")
    num_seen: Count = Field(description="Images of the other domains that were only measured.")
    num_groups: Count | None = Field(description="Groups (patients) of the tested images; None without groups.")
    num_excluded: Count = Field(description="Images of other domains in no part, because their group has images here, too.")
    picked: dict[str, float | int | str] = {}
    picked_by: str | None = Field(description="Metric on val that picked the model.")
    best_epoch: int | None
    val_metric: float | None
    unseen: DomainMetricRecord | None = Field(description="On the domain; None where no training ended with a model.")
    seen: DomainMetricRecord | None = Field(
        default=None, description="On images of the other domains; None: none were set apart."
    )
    gap: DomainMetricRecord | None = Field(default=None, description="Seen minus unseen.")
    metrics: list[MetricRecord] = Field(default=[], description="Every metric over all classes, on the domain.")
    reason: str | None = Field(default=None, description="Why there is no model.")


class WorstDomainRecord(DomainMetricRecord):
    """The lowest value of several domains; the interval holds the lowest true value of any of them."""

    domain: str


class UnseenDomainsRecord(Record):
    """Every domain that was left out, and what they say together."""

    column: str = Field(description="That says where an image comes from.")
    names: list[str] = Field(description="All domains.")
    metric: str
    title: str
    is_each: bool = Field(description="Whether every domain was left out in turn.")
    is_oracle: bool = Field(description="Whether models were picked on images of the domain that they never saw: an upper bound.")
    domains: list[UnseenDomainRecord]
    mean: DomainMetricRecord | None = Field(default=None, description="Over the domains, each counting the same.")
    worst: WorstDomainRecord | None = None
    seen: DomainMetricRecord | None = Field(default=None, description="Mean of seen over the trainings.")
    gap: DomainMetricRecord | None = Field(default=None, description="Mean of seen minus unseen.")
    spread: float | None = Field(default=None, description="Standard deviation over the domains.")
