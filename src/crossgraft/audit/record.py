"""What ``crossgraft audit`` finds."""

from __future__ import annotations

import math
from typing import ClassVar, Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord
from crossgraft.edit.record import EditRow
from crossgraft.metrics import MetricValue
from crossgraft.models.record import ModelRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, LooksRecord, Record, Reference, Share, SparseRecord
from crossgraft.statistics import MeanInterval
from crossgraft.words.formatting import counted

REMARK = "An attribute may carry clinical signal: a gap is not proof of a wrong model."
_BOUNDED = frozenset(
    {"clean_auc", "iid_auc", "ood_auc", "iid", "ood", "clean", "aligned", "worst_group_accuracy"}
    | {"worst_group_accuracy_by_val", "iid_micro_auc", "ood_micro_auc"}
)
"""Student's t knows nothing of 0 and 1."""

AGAINST = " against "
"""Between an artefact and what images have instead that do not carry it."""
Band = Literal["low", "high"]
WhichNetwork = Literal["pretrained", "tuned"]


class AuditMetric(Record):
    """One number with its intervals of 95 %."""

    name: str
    value: float | None
    low: float | None = Field(default=None, description="Over folds; of a trained model over patients.")
    high: float | None = None
    patients_low: float | None = Field(default=None, description="Over the patients of the test part, or its images.")
    patients_high: float | None = None
    no_interval_reason: str | None = None

    @classmethod
    def over_folds(cls, name: str, mean: MeanInterval, patients: MetricValue | None = None) -> AuditMetric:
        """A mean over folds, and perhaps the interval of the same number over the patients of the test part."""
        return cls(
            name=name,
            value=mean.mean,
            low=mean.low if mean.low is None or name not in _BOUNDED else max(mean.low, 0.0),
            high=mean.high if mean.high is None or name not in _BOUNDED else min(mean.high, 1.0),
            patients_low=None if patients is None else patients.low,
            patients_high=None if patients is None else patients.high,
            no_interval_reason=mean.reason or (patients.note if patients is not None and patients.low is None else None),
        )

    @classmethod
    def over_patients(cls, name: str, value: MetricValue) -> AuditMetric:
        """A number of one model, which has one interval."""
        low, high, reason = value.low, value.high, value.note if value.low is None else None
        ends = {"low": low, "high": high, "patients_low": low, "patients_high": high}
        return cls(name=name, value=value.value, **ends, no_interval_reason=reason)


class PriorityRecord(Record):
    """Which frequencies one network looks at."""

    network: WhichNetwork
    objective: str = Field(description="What the gradient is of: true labels, predicted labels or features.")
    psd: list[float] | None = Field(description="By ring, with a sum of 1; None: no image has a gradient that says something.")
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


class PriorityRow(Record):
    """Networks that were fine-tuned at one share, mean over folds."""

    share: Share = Field(description="p_art, share of the training positives that carry the artefact.")
    psd: list[float] = Field(description="By ring, with a sum of 1.")
    num_networks: Count
    kept: AuditMetric | None = Field(description="Overlap with the learning priority before fine-tuning.")
    overlap: AuditMetric | None = Field(description="Overlap with the spectrum of the artefact.")


class PriorityByShare(Record):
    """Learning priority after fine-tunings on more and more images with an artefact."""

    confounder: str
    objective: str = Field(description="What the gradient is of: true labels or features.")
    before: list[float] | None = Field(description="Of the pretrained network; None: it does not have this objective.")
    overlap_before: float | None = Field(description="Overlap of that with the spectrum of the artefact.")
    rows: list[PriorityRow] = Field(description="By share.")


class ModelFrequencies(Record):
    """One model."""

    model: str
    num_images: Count = Field(default=0, description="Images whose spectra were looked at.")
    frequencies: list[float] = Field(default_factory=list[float], description="Cycles per pixel of the input, by ring.")
    images: list[float] = Field(default_factory=list[float], description="Mean spectrum of the images, with a sum of 1.")
    priorities: list[PriorityRecord] = Field(
        default_factory=list[PriorityRecord], description="The first is what overlaps are with."
    )
    artefacts: list[ArtefactFrequencies] = Field(default_factory=list[ArtefactFrequencies])
    bands: BandRecord | None = None
    by_share: list[PriorityByShare] = Field(
        default_factory=list[PriorityByShare], description="Of fine-tunings for the audit (full mode), by artefact and objective."
    )
    notes: list[str] = Field(default_factory=list[str], description="What could not be looked at, and why.")

    def priority(self, network: WhichNetwork, objective: str) -> PriorityRecord | None:
        """The priority of this network with this objective."""
        fitting = (each for each in self.priorities if (each.network, each.objective) == (network, objective))
        return next(fitting, None)


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


AuditOutcome = Literal["relies", "sensitive", "passes", "undecided", "undetectable", "untrained", "impossible"]
AuditMode = Literal["quick", "full", "trained"]
GateState = Literal["passed", "failed", "not assessable"]


class AuditCell(Record):
    """Images of one class, with what confounds or without, mean over folds."""

    positive: bool
    artefact: bool
    num_images: Count
    accuracy: float
    is_small: bool = Field(description="Fewer than ten images.")


class AuditPoint(Record):
    """All folds at one share."""

    share: Share = Field(description="p_art, share of the training positives that carry the artefact.")
    realised: Share
    metrics: list[AuditMetric] = Field(description="iid, ood, clean, aligned, worst group, gaps …")
    cells: list[AuditCell]

    def metric(self, name: str) -> AuditMetric | None:
        """The metric of this name."""
        return next((each for each in self.metrics if each.name == name), None)


class AuditEntry(SparseRecord):
    """One model, one confounder, and perhaps one mitigation."""

    sparse: ClassVar[frozenset[str]] = frozenset({"larger_image_size"})

    model: str
    confounder: str = Field(description="As it was written, with its options.")
    mitigation: str = "erm"
    mode: AuditMode
    outcome: AuditOutcome
    reason: str
    metrics: list[AuditMetric]
    points: list[AuditPoint] = Field(default_factory=list[AuditPoint], description="By share; of a trained model one.")
    detectability: AuditMetric | None = None
    input_rms: float | None = Field(default=None, description="Of what the edit changes at the input, in its units.")
    larger_image_size: int | None = Field(
        default=None, description="Side of an input in pixels that more of an unseen artefact reaches; None where none does."
    )
    start: str = Field(default="", description="What stands for the starting network of a trained model, or why nothing does.")
    shams: str = Field(default="", description="Which shams were asked, or why none were.")
    overlap: float | None = Field(default=None, description="Of its spectrum with the learning priority of the model.")

    @classmethod
    def impossible(cls, model: str, confounder: str, reason: str, *, mode: AuditMode, mitigation: str = "erm") -> AuditEntry:
        """What could not be looked at, and why."""
        return cls(
            model=model, confounder=confounder, mitigation=mitigation, mode=mode, outcome="impossible", reason=reason, metrics=[]
        )

    def metric(self, name: str) -> AuditMetric | None:
        """The metric of this name."""
        return next((each for each in self.metrics if each.name == name), None)

    @property
    def is_assessable(self) -> bool:
        """Whether the numbers say something about the model."""
        return self.outcome not in ("undetectable", "untrained", "impossible")


class AuditDifferencePoint(Record):
    """Two models at one share."""

    share: Share
    ood: AuditMetric = Field(description="O.o.d. AUC minus that of the reference, mean over folds.")
    p_value: Share = Field(description="Exact two-sample permutation test of the o.o.d. AUC of the folds, two-sided.")
    p_value_holm: Share = Field(description="Adjusted by Holm over all shares and confounders of this model.")
    floor: Share = Field(description="Smallest p-value that so few folds can give.")


class AuditDifference(Record):
    """One model beside the one that relies least, with one confounder, on the same test images."""

    confounder: str
    model: str
    reference: str = Field(description="Model with the smallest shortcut reliance index of all that can be assessed.")
    reliance: AuditMetric = Field(description="Shortcut reliance index minus that of the reference.")
    points: list[AuditDifferencePoint]


class ConfounderRecord(Record):
    """What was put into images, in grey levels of 8 bits; or an attribute of them."""

    confounder: str
    title: str
    leaf: str | None = Field(description="Place in MICCAT; None for what is none.")
    scope: str | None
    said: str = Field(description="What it is, in words.")
    rms: float | None = None
    share_changed: Share | None = None
    psnr: float | None = Field(default=None, description="Peak signal-to-noise ratio in dB.")

    @classmethod
    def of_edit(cls, name: str, edit: object, done: EditRow | None) -> ConfounderRecord:
        """What an edit is, and what it changed where it could be done."""
        first = (type(edit).__doc__ or "").strip().splitlines()
        return cls(
            confounder=name,
            title=str(getattr(edit, "title", name)),
            leaf=getattr(edit, "leaf", None),
            scope=getattr(edit, "scope", None),
            said=first[0] if first else "",
            rms=None if done is None else done.rms,
            share_changed=None if done is None else done.share_changed,
            psnr=None if done is None or not math.isfinite(done.psnr) else done.psnr,
        )

    @classmethod
    def of_attribute(cls, name: str, in_words: str, num_missing: int) -> ConfounderRecord:
        """An attribute of the images, which cannot be put into them."""
        missing = f" Of {counted(num_missing, 'image')} it is not known; they are left out." if num_missing else ""
        sentence = f"{in_words}.{missing} {REMARK}"
        return cls(confounder=name, title=in_words, leaf=None, scope="attribute", said=sentence)


class ImagesNeeded(Record):
    """How many images a verdict needs."""

    confounder: str
    what: str = Field(description="Which images, or patients, are counted.")
    available: Count = Field(description="In the part that is measured on.")
    needed: Count


class GateRecord(Record):
    """One condition of ``--fail-on``."""

    condition: str
    state: GateState
    said: str


class FileFactRow(Record):
    """How well a fact of the file alone tells the class."""

    fact: str
    num_images: Count = Field(description="Images of which it is known.")
    balanced_accuracy: AuditMetric = Field(description="Cross-validated; 0.5 is chance.")
    auc: AuditMetric


class ReadableRow(Record):
    """How well an attribute can be read from features, by a probe that was fitted to other patients."""

    model: str
    attribute: str = Field(description="As it was written.")
    said: str = Field(description="What is present, in words.")
    features: str = Field(description="What is read: features of the network, of random weights, pixels, or the class alone.")
    num_images: Count = Field(description="Held-out images of which the attribute is known.")
    num_with: Count
    auc: AuditMetric
    more_than_random_weights: AuditMetric | None = Field(description="On the same images; None: nobody can build the network.")
    more_than_class: AuditMetric | None = Field(description="AUC minus that of the class alone, on the same images.")


class AuditRecord(SparseRecord):
    """Whether models lean on what confounds."""

    sparse: ClassVar[frozenset[str]] = frozenset({"readable"})

    schema_version: int = SCHEMA_VERSION
    kind: Literal["audit"] = "audit"
    dataset: DatasetRecord
    positive: str = Field(description="Class that is told from all others.")
    mode: AuditMode
    models: list[ModelRecord]
    confounders: list[ConfounderRecord]
    entries: list[AuditEntry]
    differences: list[AuditDifference] = Field(
        default_factory=list[AuditDifference], description="Between models that are trained for the audit, from two of them on."
    )
    shares: list[Share]
    num_folds: Count
    num_test: Count
    num_positive_test: Count
    test_mode: str
    unit: str
    stage: Literal["native", "input"] = Field(
        default="native", description="Whether artefacts are in images as they are, or resized for the network."
    )
    negatives: Share = Field(description="Share of the negatives that carry the artefact, in training and in i.i.d. test images.")
    strength: float
    seed: int
    file_facts: list[FileFactRow] = Field(default_factory=list[FileFactRow])
    readable: list[ReadableRow] = Field(default_factory=list[ReadableRow], description="Attributes that were asked for.")
    needs: list[ImagesNeeded] = Field(
        default_factory=list[ImagesNeeded], description="How many images a verdict needs, as --plan says."
    )
    gates: list[GateRecord] = Field(default_factory=list[GateRecord])
    checks: list[CheckRecord] = Field(default_factory=list[CheckRecord])
    frequency: AuditFrequencies | None = Field(default=None, description="None: it was not asked for.")
    notes: list[str] = Field(default_factory=list)
    looks: LooksRecord | None = None
    references: list[Reference]
    seconds: float


class AuditTrainingRecord(Record):
    """What one fine-tuning of an audit said, kept so that a stopped run goes on."""

    key: str = Field(description="Hash of everything that decides the numbers.")
    realised: Share
    threshold: float
    best_epoch: Count
    clean: list[float] = Field(description="Probabilities of the class in question, of the test images as they are.")
    edited: dict[str, list[float]] = Field(description="Confounder → of the same images with it.")
    priorities: dict[str, list[float]] = Field(
        default_factory=dict[str, list[float]], description="Objective → learning priority of the tuned network, where asked for."
    )
