"""Frequencies of an audit: at the input of a network, but for those of filters. Ring 0, the mean of an image, is 0 everywhere."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from crossgraft.records.base import Count, Record

Band = Literal["low", "high"]
WhichNetwork = Literal["pretrained", "tuned"]


class PriorityRecord(Record):
    """Which frequencies one network looks at."""

    network: WhichNetwork
    objective: str = Field(description="What the gradient is of: true labels, predicted labels or features.")
    psd: list[float] | None = Field(
        description="By ring, with a sum of 1; None: no image has a gradient that says something."
    )
    num_saturated: Count = Field(description="Images that are left out, because their gradient is 0.")


class ArtefactFrequencies(Record):
    """What is left of an artefact at the input, beside what the network looks at."""

    confounder: str
    scope: str
    psd: list[float] | None = Field(description="By ring, with a sum of 1; None: nothing is left.")
    num_changed: Count
    input_rms: float = Field(description="Root mean square of the change, in units of the input.")
    overlap: float | None = Field(description="With the first priority; in [0, 1].")
    cosine: float | None
    spearman: float | None
    distance: float | None = Field(description="Earth mover's distance, in shares of the band.")
    flat: float | None = Field(description="Overlap with a flat spectrum.")
    overlap_before: float | None = Field(default=None, description="With the pretrained network; objective features.")
    overlap_after: float | None = Field(default=None, description="With the tuned network; objective features.")
    is_informative: bool = Field(description="Whether networks may be ordered by the overlap.")
    reason: str | None = Field(description="Reason why there is no overlap, or why it says nothing.")


class BandPoint(Record):
    """AUC under one filter, with its interval of 95 % over patients, or images."""

    kind: Band = Field(description="low: what is below the cutoff stays; high: what is above it.")
    cutoff: float = Field(description="Cycles per pixel of the images as they are.")
    value: float | None
    low: float | None
    high: float | None


class BandRecord(Record):
    """AUC of a trained model under filters."""

    positive: str
    chance: float
    clean: float | None
    clean_low: float | None
    clean_high: float | None
    points: list[BandPoint]


class ModelFrequencies(Record):
    """One model."""

    model: str
    num_images: Count = Field(default=0, description="Images whose spectra were looked at.")
    frequencies: list[float] = Field(default_factory=list[float], description="Cycles per pixel of the input, by ring.")
    images: list[float] = Field(
        default_factory=list[float], description="Mean spectrum of the images, with a sum of 1."
    )
    priorities: list[PriorityRecord] = Field(
        default_factory=list[PriorityRecord], description="The first is what overlaps are with."
    )
    artefacts: list[ArtefactFrequencies] = Field(default_factory=list[ArtefactFrequencies])
    bands: BandRecord | None = None
    notes: list[str] = Field(default_factory=list[str], description="What could not be looked at, and why.")

    def priority(self, network: WhichNetwork, objective: str) -> PriorityRecord | None:
        """The priority of this network with this objective."""
        found = (each for each in self.priorities if (each.network, each.objective) == (network, objective))
        return next(found, None)


class RiskPoint(Record):
    """One model: its overlap with an artefact, and how far it relies on it."""

    model: str
    overlap: float
    reliance: float = Field(description="Shortcut reliance index, with its interval over folds.")
    low: float | None
    high: float | None


class RiskRankRecord(Record):
    """Whether models that overlap more with an artefact rely more on it."""

    confounder: str
    points: list[RiskPoint] = Field(description="Models that can be assessed.")
    spearman: float | None
    p_value: float | None = Field(description="One-sided, by permutation of the models.")
    reason: str | None = Field(description="Reason why there is none.")


class AuditFrequencies(Record):
    """All models, and the ranks over them."""

    models: list[ModelFrequencies]
    ranks: list[RiskRankRecord] = Field(default_factory=list[RiskRankRecord])
