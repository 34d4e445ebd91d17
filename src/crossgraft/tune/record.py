"""What ``crossgraft tune`` writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from crossgraft.data.record import DatasetRecord, FileCountRecord, SplitRow
from crossgraft.edit.record import MayBeEdited
from crossgraft.metrics.record import CalibrationRecord, ConfusionRecord, MetricRecord, RocRecord, ThresholdRecord
from crossgraft.models.record import PreprocessingRecord
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, LooksRecord, Record, Reference, SparseRecord
from crossgraft.types import RecordedTask


class EpochRow(Record):
    """One epoch of one job."""

    job: str
    epoch: int = Field(description="From 1; epochs of the head alone come first.")
    stage: Literal["head", "all"] = "all"
    learning_rate: float
    train_loss: float | None
    terms: dict[str, float] = Field(default={}, description="Mean of each term of objective and regularisers.")
    val_loss: float | None
    val_metric: float | None
    metric_reason: str | None = Field(default=None, description="Why there is no metric.")
    val_cka: float | None = Field(
        default=None, description="Similarity of the features of the validation rows to those of the pretrained network."
    )
    val_cka_debiased: float | None = Field(default=None, description="The same without the bias of few rows.")
    val_cka_adapted: float | None = Field(
        default=None, description="Similarity to the pretrained weights with BatchNorm statistics of the training images."
    )
    val_cka_debiased_adapted: float | None = Field(default=None, description="The same without the bias of few rows.")
    is_best: bool = Field(default=False, description="The epoch whose weights were kept.")
    seconds: float
    images_per_second: float | None = None


class BlockGradientRecord(Record):
    """Norm of the gradient of one building block over the steps of a training; what overflowed counts nowhere but as a spike."""

    block: str = Field(description="Its name in the network.")
    median: float | None
    largest: float | None
    num_spikes: Count = Field(description="Steps with more than twice the moving average of the step before.")
    averages: list[float | None] = Field(description="Moving average in each of the listed steps.")


class GradientNormsRecord(Record):
    """L2 norms of the gradient of each building block, before clipping; every step stands in ``gradient_norms.csv``."""

    job: str
    num_steps: Count
    smoothing: float = Field(description="What a step counts for in the moving average, over what the one after it does.")
    steps: list[int] = Field(description="Steps that are listed, from 1; at most 200, evenly spread.")
    blocks: list[BlockGradientRecord] = Field(description="Blocks with a trained parameter, first to last.")


BatchNormMode = Literal["train", "frozen", "adapt"]


class BatchNormRecord(Record):
    """What BatchNorm normalised with while the network was trained."""

    mode: BatchNormMode = Field(
        description="The mean and variance of each batch, which move the kept ones; the pretrained ones; or those of each "
        "batch, from a network whose kept ones were first estimated on the training images."
    )
    reason: str = Field(default="", description="Why, where nobody asked for it.")
    num_layers: int = Field(description="Layers with kept means and variances; 0: there was nothing to decide.")
    num_moving: int | None = Field(
        default=None, description="Those whose kept ones moved while the network was trained; None: not counted."
    )

    @property
    def effective_mode(self) -> BatchNormMode:
        """The mode, by what became of the statistics: a method that moves none of them keeps them frozen, too."""
        return "frozen" if self.mode == "train" and self.num_moving == 0 else self.mode


class KeepRecord(Record):
    """The similarity that training was to end at, and where it ended. One entry per fold; one without folds."""

    target: float = Field(description="Debiased CKA on val to the network that training started from.")
    found: list[float | None] = Field(description="That of the epochs that were kept; None where it is not defined.")
    factors: list[float] = Field(description="Factors of the regularisers' terms in the trainings that were picked.")
    tolerance: float = Field(description="Distance from the target that counts as reached.")

    @property
    def is_reached(self) -> bool:
        """Whether all of them are within the tolerance."""
        return all(value is not None and abs(value - self.target) <= self.tolerance for value in self.found)


MOST_PICTURES = 2000
"""Answered images on one page; a page of as many has at most 15 MB."""


class MistakeRecord(Record):
    """One wrong answer about an image that selection did not see."""

    row: int = Field(description="Number of the image, from 1.")
    target: str = Field(description="Its true class, or all its labels.")
    answer: str = Field(description="What was said instead; with several labels per image the label, or 'no LABEL'.")
    probability: float = Field(description="That the model states for its answer, after temperature.")


class MistakesRecord(Record):
    """The images that were answered wrongly, and those of them that the model was surest of."""

    num_wrong: int = Field(description="Images with a wrong answer.")
    num_images: int
    most_certain: list[MistakeRecord] = Field(description="The surest first, at most 12, one per image.")


def with_form(name: str, form: str | None) -> str:
    """What goes by one name in several forms, with the one that it takes."""
    return name if form is None else f"{name} ({form})"


class PluginRecord(SparseRecord):
    """A method, objective, regulariser, batch or feature transform, augmentation or loss as it was used."""

    sparse: ClassVar[frozenset[str]] = frozenset({"form"})

    kind: str = Field(description="For example 'method'.")
    spelling: str = Field(description="What to type to get it again, with its options: 'l2_sp:alpha=0.1'.")
    title: str
    reference: str = ""
    in_full: str | None = Field(default=None, description="The same, with what was left open filled in, where that differs.")

    form: str | None = Field(default=None, description="Which of several forms it takes; None: it has one.")

    @property
    def named(self) -> str:
        """In print, with its form where there are several.

        >>> PluginRecord(kind="regularizer", spelling="repsim", title="RepSim", form="CKA form").named
        'RepSim (CKA form)'
        """
        return with_form(self.title, self.form)

    @property
    def used(self) -> str:
        """What was used, whatever of it was typed."""
        return self.in_full or self.spelling


class PlanRow(Record):
    """Parameters that are trained, or frozen, for one and the same reason."""

    trained: bool
    reason: str
    num_parameters: int
    num_tensors: int
    names: list[str] = Field(description="Names of the tensors, at most the first and the last three.")


class PlanRecord(SparseRecord):
    """What will be trained, how long, and at what cost; made before the first step."""

    sparse: ClassVar[frozenset[str]] = frozenset({
        "added_seconds_per_step", "added_bytes", "grid", "seconds_beside", "multiply_adds", "added_multiply_adds",
    })  # fmt: skip

    rows: list[PlanRow] = Field(description="Trained first, the largest first.")
    num_trained: int = Field(description="Parameters of the network that are trained, its adapters among them.")
    num_frozen: int
    num_own_parameters: int = Field(
        default=0, description="Parameters of regularisers, trained beside the network and not counted with it."
    )
    added_seconds_per_step: float | None = Field(
        default=None, description="What those regularisers take of a step; None: there are none, or it was not measured."
    )
    added_bytes: int | None = Field(default=None, description="What they take of the memory.")
    multiply_adds: int | None = Field(
        default=None,
        description="Of a forward pass of one image, adapters and head among it: #FLOPs as papers count them. None: written by "
        "an earlier version.",
    )
    added_multiply_adds: int | None = Field(
        default=None,
        description="What those regularisers add to a forward pass in training that look into it with parameters of their own "
        "(reconstructors); None: there are none.",
    )
    num_adapter_parameters: int = Field(default=0, description="Of adapters, which are among the trained ones.")
    adapter_bytes: int = Field(default=0, description="Of those parameters alone, as they are saved.")
    num_train: int | None = Field(default=None, description="Training images of one job.")
    num_val: int | None = Field(default=None, description="Images that pick the epoch, of one job.")
    num_jobs: int = Field(description="Folds × grid points; with --keep × the most trainings that the search takes.")
    seeks_factor: bool = Field(default=False, description="Whether --keep looks for a factor, so that fewer may do.")
    grid: list[dict[str, float | int]] | None = Field(
        default=None,
        description="Setting → value at each point; None without a grid. Below, epochs, steps of an epoch and "
        "batch are those of the longest training.",
    )
    epochs: int = Field(description="At most; early stopping may end before.")
    steps_per_epoch: int
    num_steps: int = Field(description="Of all jobs, at most.")
    batch_size: int
    settings: dict[str, str] = Field(description="Every choice in force, with what was chosen automatically.")
    seconds_per_step: float | None
    expected_seconds: float | None = Field(description="Of all jobs, at most.")
    seconds_beside: float | None = Field(
        default=None,
        description="Of all else that the command does: start, looks at val and test, metrics, page; with --plan only.",
    )
    expected_reason: str | None = Field(default=None, description="Why there is no time, or how it was measured.")
    peak_bytes: int | None
    peak_reason: str | None = None
    notes: list[str] = []

    @property
    def training_multiply_adds(self) -> int | None:
        """Multiply–adds of an image's forward pass in training, reconstructors among it; None: not known."""
        return None if self.multiply_adds is None else self.multiply_adds + (self.added_multiply_adds or 0)

    @property
    def settings_line(self) -> str:
        """What is in the slots, in one line."""
        slots = ("method", "regularizer", "batch transform", "augmentation", "loss")
        return ", ".join(f"{slot} {self.settings[slot]}" for slot in slots if slot in self.settings)


class GridPointRecord(Record):
    """One point of the grid in one fold: what was tried, and what selection saw of it."""

    job: str
    fold: int | None
    values: dict[str, float | int | str] = Field(description="Setting → value; empty without a grid.")
    state: Literal["done", "failed"]
    reason: str | None = Field(default=None, description="Why it failed.")
    val_metric: float | None = None
    val_loss: float | None = None
    best_epoch: int | None = None
    num_epochs: int | None = None
    stopped_early: bool = False
    picked: bool = False
    seconds: float = 0.0


class FoldRecord(Record):
    """One fold: its rows, and what its picked model gave on rows that selection did not see."""

    fold: int
    num_train: int
    num_val: int
    num_test: int
    num_groups: int | None
    picked: dict[str, float | int | str] = {}
    best_epoch: int | None
    val_metric: float | None
    test_metric: float | None
    low: float | None = None
    high: float | None = None
    reason: str | None = None


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


class TunedModelRecord(Record):
    """The pretrained network that was fine-tuned."""

    name: str
    architecture: str
    source: str
    family: str
    licence: str | None
    num_parameters: int = Field(description="With the new head.")
    num_features: int
    num_outputs: int
    weights_fingerprint: str = Field(description="Of the pretrained weights.")
    preprocessing: PreprocessingRecord
    from_scratch: bool = False


class TuningRecord(MayBeEdited):
    """Everything that ``crossgraft tune`` found; ``report.json`` is this record."""

    sparse: ClassVar[frozenset[str]] = MayBeEdited.sparse | {"unseen_domains"}

    schema_version: int = SCHEMA_VERSION
    kind: Literal["tuning"] = "tuning"
    dataset: DatasetRecord
    splits: list[SplitRow]
    leakage: str = Field(description="Whether one patient may be in two parts, in a sentence.")
    leakage_checked: bool
    model: TunedModelRecord
    plugins: list[PluginRecord]
    plan: PlanRecord
    selection_rule: str = Field(description="How the model was picked, in words, with the metric.")
    selection_metric: str
    grid: list[GridPointRecord] = Field(description="One row per job.")
    folds: list[FoldRecord] = []
    unseen_domains: UnseenDomainsRecord | None = Field(default=None, description="None: no domain was left out (--leave-out).")
    history: list[EpochRow]
    metrics: list[MetricRecord]
    primary_metric: str = Field(description="The metric that headlines are about.")
    confusion: ConfusionRecord | None = None
    mistakes: MistakesRecord | None = Field(default=None, description="None: written by an earlier version.")
    roc: list[RocRecord] = []
    calibration: CalibrationRecord | None = None
    calibration_reason: str | None = Field(default=None, description="Why there is no calibration.")
    thresholds: list[ThresholdRecord] = []
    similarity: dict[str, float] = Field(
        default={},
        description="How alike test features before and after are: 'cka', 'cka_debiased'. Where the network has BatchNorm, "
        "with the ending '_adapted' to the pretrained weights with statistics of the training images, and with "
        "'_untouched' of those to the pretrained network: what moved statistics do without any training.",
    )
    gradient_norms: list[GradientNormsRecord] = Field(
        default=[], description="One per training that was picked; empty without --log-gradient-norms."
    )
    batch_norm: BatchNormRecord | None = Field(default=None, description="None: written by an earlier version.")
    keep: KeepRecord | None = Field(default=None, description="None: no similarity was asked for (--keep).")
    looks: LooksRecord | None = Field(
        default=None, description="How often these test images were looked at; None: not counted (--no-ledger)."
    )
    saved_model: str | None = Field(default=None, description="Folder in the run directory.")
    saved_model_reason: str | None = None
    seconds: float
    num_processes: int = 1
    devices: list[str] = []
    precision: str = "32"
    checks: list[CheckRecord] = []
    warnings: list[str] = []
    notes: list[str] = []
    references: list[Reference] = []

    @model_validator(mode="after")
    def _one_count_per_class(self) -> TuningRecord:
        for number, split in enumerate(self.splits):
            if len(split.class_counts) != len(self.dataset.class_names):
                raise ValueError(f"splits.{number}.class_counts needs one count per name in class_names of the dataset")
        return self

    @property
    def is_oracle(self) -> bool:
        """Whether models were picked on images of the domain that they are tested on."""
        return self.unseen_domains is not None and self.unseen_domains.is_oracle

    @property
    def headline(self) -> MetricRecord | None:
        """The primary metric on held-out rows; where every domain was left out in turn, the mean over them."""
        pooled = self.metric(self.primary_metric)
        unseen = self.unseen_domains
        if pooled is None or unseen is None or not unseen.is_each:
            return pooled
        mean = unseen.mean or DomainMetricRecord(value=None, reason="it is defined on no domain")
        ends = {"value": mean.value, "low": mean.low, "high": mean.high, "explanation": pooled.explanation}
        reasons = {"reason": mean.reason if mean.value is None else None, "no_interval_reason": mean.reason}
        return pooled.model_copy(update={**ends, **reasons})

    def metric(self, name: str, *, split: str | None = None) -> MetricRecord | None:
        """The metric called ``name`` over all classes and images; of ``split``, or of the first that has it."""
        for row in self.metrics:
            overall = row.class_name is None and row.attribute is None
            if row.metric == name and overall and split in (None, row.split):
                return row
        return None


class PredictionRow(Record):
    """What the model says about one image."""

    row: int = Field(description="Number of the image, from 1.")
    name: str | None = Field(default=None, description="Name of the file; in a run directory only with --show-names.")
    predicted: list[str] = Field(description="The most probable class; or every label above its threshold.")
    decision: str = Field(description="With the threshold; 'unreadable' where the image could not be decoded.")
    probabilities: list[float] = Field(description="One per class, after temperature; empty if unreadable.")
    logits: list[float] = []
    certainty: float | None = Field(description="Highest probability; with labels the least distance from 0.5.")
    target: str | None = Field(default=None, description="The true class, where it is known.")
    seen: bool | None = Field(
        default=None,
        description="Whether the model has learned from this image, or a head from its group; None: not known, or unreadable.",
    )
    reason: str | None = Field(default=None, description="Why there is no prediction.")

    def probability_of_decision(self, class_names: Sequence[str]) -> float | None:
        """The probability of the decided class; with several labels per image, the highest of all."""
        if self.decision in class_names and self.probabilities:
            return self.probabilities[class_names.index(self.decision)]
        return max(self.probabilities, default=None)


class PredictionRecord(Record):
    """Everything that ``crossgraft predict``, or ``fewshot`` of a support set, found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["prediction"] = "prediction"
    model: TunedModelRecord
    model_trained_on: str = Field(description="Name of the data that the model was fine-tuned on, or that the head learned from.")
    model_fingerprint: str = Field(description="Of the fine-tuned weights.")
    head: str | None = Field(
        default=None, description="Few-shot head, as it is written, on the frozen model; None: a fine-tuned model."
    )
    num_support: int | None = Field(default=None, description="Labelled images that the head learned from.")
    task: RecordedTask
    class_names: list[str]
    data_name: str
    num_images: int
    num_unreadable: int = 0
    rows_used: str = Field(default="", description="Which rows of the data, in words; empty: not recorded.")
    is_of_run: bool = Field(
        default=False,
        description="Whether the images, but for those that had a part in the fine-tuning, are its test images, or there are no "
        "others.",
    )
    num_seen: int | None = Field(
        default=None,
        description="Images that the model has learned from; they are measured only where there are no others. None: not known.",
    )
    files: list[FileCountRecord] = Field(
        default=[], description="All visible files below the images by kind and class; empty where they are no files."
    )
    temperature: float | None
    thresholds: list[ThresholdRecord] = []
    rows: list[PredictionRow]
    predicted_counts: dict[str, int] = Field(default={}, description="Images of each predicted class or label.")
    most_certain: list[int] = Field(default=[], description="Numbers of images, the most certain first.")
    least_certain: list[int] = Field(default=[], description="Numbers of images, the least certain first.")
    metrics: list[MetricRecord] = Field(default=[], description="Measured here, where true classes are known.")
    looks: LooksRecord | None = Field(
        default=None,
        description="Place among the looks at these images; None: nothing was measured, the model had seen them, or looks were "
        "not counted.",
    )
    training_metrics: list[MetricRecord] = Field(default=[], description="As stored with the model.")
    images_per_second: float | None = None
    seconds: float = 0.0
    warnings: list[str] = []
    notes: list[str] = []
    references: list[Reference] = []
