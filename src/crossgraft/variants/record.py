"""What ``crossgraft tune --compare`` writes."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, model_validator

from crossgraft.data.record import DatasetRecord, SplitRow
from crossgraft.edit.record import MayBeEdited
from crossgraft.interpolate.record import InterpolationRecord
from crossgraft.metrics.record import MetricRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, LooksRecord, Record, Reference, Share, SparseRecord
from crossgraft.tune.record import BatchNormMode, PlanRecord, TunedModelRecord, with_form


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


IntervalOf = Literal["seeds", "test images", "test images and seeds"]
"""What an interval says: how much another seed would change, or other test images from the same place, or both."""


class ValueRecord(Record):
    """A number with its 95 % interval."""

    value: float | None
    low: float | None = None
    high: float | None = None
    interval_of: IntervalOf | None = Field(default=None, description="What would be drawn anew; None: no interval.")
    no_interval_reason: str | None = None


class DifferenceRecord(Record):
    """One variant minus another in the primary metric, on the same test images with the same seeds."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = Field(default=None, description="Why there is no value, or no interval.")

    @property
    def is_separable(self) -> bool | None:
        """Whether the interval excludes 0; None without an interval."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0


class ComparedPlan(SparseRecord):
    """What one variant will do."""

    sparse: ClassVar[frozenset[str]] = frozenset({"form"})

    variant: str
    form: str | None = Field(default=None, description="Which form of its plug-ins it takes; None: they have one only.")
    plan: PlanRecord

    @property
    def named(self) -> str:
        """As typed, with the form that it takes: ``repsim (CKA form)``."""
        return with_form(self.variant, self.form)


class ComparisonPlanRecord(SparseRecord):
    """All that will be trained, and how long it takes at most."""

    sparse: ClassVar[frozenset[str]] = frozenset({"seconds_beside"})

    schema_version: int = SCHEMA_VERSION
    kind: Literal["tuning-comparison-plan"] = "tuning-comparison-plan"
    variants: list[ComparedPlan]
    seeds: list[int]
    num_trainings: int
    expected_seconds: float | None = Field(description="Of all trainings, at most; None where one could not be timed.")
    seconds_beside: float | None = Field(
        default=None,
        description="Of all else that the command does: start, looks at images, metrics, curves, pages; with --plan only.",
    )


class ComparedTrainingRecord(Record):
    """One variant with one seed."""

    variant: str
    seed: int
    state: Literal["done", "failed"]
    reason: str | None = Field(default=None, description="Why it failed.")
    folder: str | None = Field(default=None, description="Its run directory, in the one of the comparison.")
    metrics: list[MetricRecord] = Field(default=[], description="On test, over all classes.")
    similarity: dict[str, float] = Field(
        default={}, description="To the pretrained features, named as in the record of a fine-tuning: 'cka', 'cka_debiased' …"
    )
    seconds: float = Field(description="Of training, without the look at test.")
    num_epochs: int | None = None
    best_epoch: int | None = None
    picked: dict[str, float | int | str] = Field(default={}, description="Of the grid.")

    def metric(self, name: str) -> MetricRecord | None:
        """The metric called ``name``."""
        return next((row for row in self.metrics if row.metric == name), None)


class ComparedDomainRecord(Record):
    """One variant on one domain that training never saw, mean over seeds."""

    domain: str
    value: ValueRecord
    difference: DifferenceRecord | None = Field(description="To the first variant, on the same images; None: it is the first.")


class ComparedDomainsRecord(Record):
    """One variant on every domain that training never saw."""

    domains: list[ComparedDomainRecord]
    mean: ValueRecord = Field(description="Over the domains; its interval counts other images and, with several, other seeds.")
    difference: DifferenceRecord | None = Field(description="Of the mean over domains, to the first variant; None for that one.")
    worst: ComparedDomainRecord | None = Field(
        default=None,
        description="Its lowest domain; the difference is to the lowest one of the first variant. None: there is one domain.",
    )
    seen: ValueRecord | None = Field(default=None, description="On images of domains that were seen; None: none were set apart.")
    gap: ValueRecord | None = Field(default=None, description="Seen minus unseen.")


class ComparedVariantRecord(SparseRecord):
    """One variant over its seeds."""

    sparse: ClassVar[frozenset[str]] = frozenset({"form", "num_trained", "multiply_adds", "peak_bytes", "unseen"})

    variant: str
    form: str | None = Field(default=None, description="Which form of its plug-ins it takes; None: they have one only.")
    settings: dict[str, str] = Field(description="What it sets, as one would type it.")
    sweep: str | None = Field(default=None, description="Shared by variants that differ in one strength alone.")
    strength: float | None = None
    is_full: bool = False
    num_done: int
    num_failed: int
    metric: ValueRecord = Field(description="The primary metric.")
    accuracy: ValueRecord
    cka: ValueRecord
    cka_debiased: ValueRecord
    cka_adapted: ValueRecord | None = Field(
        default=None,
        description="To the pretrained weights with BatchNorm statistics of the training images; None: it has no BatchNorm.",
    )
    cka_debiased_adapted: ValueRecord | None = None
    batch_norm: BatchNormMode | None = Field(
        default=None,
        description="What BatchNorm normalised with; 'frozen', too, where the method moves no statistics. None: it has none.",
    )
    num_trained: int | None = Field(default=None, description="Parameters that are trained, those of regularisers among them.")
    multiply_adds: int | None = Field(
        default=None, description="Of an image's forward pass in training, reconstructors among it: #FLOPs as papers count them."
    )
    peak_bytes: int | None = Field(default=None, description="Largest memory of its training, as planned.")
    seconds: float | None = Field(description="Of one training, on average.")
    time_ratio: float | None = Field(default=None, description="Seconds over those of full.")
    difference: DifferenceRecord | None = Field(default=None, description="To full; None: it is full, or full is not there.")
    above_curve: DifferenceRecord | None = Field(
        default=None,
        description="To the best network on the way from pretrained to full that is at least as similar: by the CKA to the "
        "adapted network where training started there (BatchNorm 'adapt'), else by the CKA to the pretrained one as it came.",
    )
    not_separable_from: list[str] = Field(default=[], description="Variants whose difference to it may be 0.")
    unseen: ComparedDomainsRecord | None = Field(default=None, description="None: no domain was left out (--leave-out).")

    @property
    def named(self) -> str:
        """As typed, with the form that it takes: ``repsim (CKA form)``."""
        return with_form(self.variant, self.form)


class ComparedOnDomainsRecord(Record):
    """Which domains were left out of every training."""

    column: str = Field(description="That says where an image comes from.")
    left_out: list[str]
    is_each: bool = Field(description="Whether every domain was left out in turn, by a training of its own.")
    is_oracle: bool = Field(description="Whether models were picked on images of the domain that they never saw: an upper bound.")
    first: str = Field(description="Variant that others are compared with.")


class FineTuningComparisonRecord(MayBeEdited):
    """Everything that ``crossgraft tune --compare`` found; ``report.json`` is this record."""

    sparse: ClassVar[frozenset[str]] = MayBeEdited.sparse | {"domains"}

    schema_version: int = SCHEMA_VERSION
    kind: Literal["tuning-comparison"] = "tuning-comparison"
    dataset: DatasetRecord
    splits: list[SplitRow]
    leakage: str
    leakage_checked: bool
    model: TunedModelRecord
    seeds: list[int]
    primary_metric: str
    variants: list[ComparedVariantRecord] = Field(description="Best first.")
    trainings: list[ComparedTrainingRecord]
    interpolation: list[InterpolationRecord] = Field(
        default=[], description="One per seed: networks between the pretrained one and full."
    )
    layer_pca: LayerPcaRecord | None = Field(default=None, description="None: it was not asked for (--layer-pca).")
    domains: ComparedOnDomainsRecord | None = Field(default=None, description="None: no domain was left out (--leave-out).")
    interpolation_reason: str | None = Field(default=None, description="Why there is none.")
    looks: LooksRecord | None = Field(
        default=None, description="How often these test images were looked at; None: not counted (--no-ledger)."
    )
    interval_words: str = Field(description="What the intervals of the variants say.")
    seconds: float = Field(description="Of all trainings.")
    checks: list[CheckRecord] = []
    warnings: list[str] = []
    notes: list[str] = []
    references: list[Reference] = []

    @property
    def is_oracle(self) -> bool:
        """Whether models were picked on images of the domain that they are tested on."""
        return self.domains is not None and self.domains.is_oracle

    def variant(self, name: str) -> ComparedVariantRecord:
        """The variant called ``name``.

        Raises:
            KeyError: There is none.
        """
        named = next((row for row in self.variants if row.variant == name), None)
        if named is None:
            raise KeyError(name)
        return named

    @property
    def full(self) -> ComparedVariantRecord | None:
        """The variant that trains everything and adds nothing, if it is among them."""
        return next((row for row in self.variants if row.is_full), None)

    @property
    def metric_title(self) -> str:
        """Title of the primary metric."""
        rows = (row.metric(self.primary_metric) for row in self.trainings)
        return next((row.title for row in rows if row is not None), self.primary_metric)
