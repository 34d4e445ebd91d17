"""The plain rows that commands write and reports read; nothing here computes anything.

Every record is a pydantic model: it validates when read back, prints as JSON, and its JSON schema documents the files of
a run directory. ``None`` means "there is no number", and a text field beside it says why. Bump ``SCHEMA_VERSION`` when a
field changes its meaning.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 1
STATIC_PRIOR = "static_prior"
"""Stands for a score where the static prior is compared with fine-tuned results."""

Role = Literal["candidate", "random weights"]
Severity = Literal["unsound", "warning", "notice", "passed", "not assessed"]


class Record(BaseModel):
    """Base of all records: immutable, and unknown fields are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="strings")


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


class DatasetRecord(Record):
    """The images that a command used. Names only: no absolute path, no patient id."""

    name: str
    source: str = Field(description="Kind of source: image_folder, csv_table, npz_file, digits …")
    num_images: int
    class_names: list[str]
    class_counts: list[int]
    rows_used: str = Field(description="For example 'split train' or 'all rows (no split given)'.")
    split_method: str = Field(description="How the split was made, in words.")
    group_column: str | None
    num_groups: int | None
    fingerprint: str
    image_kinds: dict[str, int] = Field(description="Size, channels and bit depth → number of images.")
    reading: list[str] = Field(default=[], description="How files of scanners were read: window, slices.")
    task: Literal["multi-class", "multi-label"] = "multi-class"
    ordinal: bool = Field(default=False, description="The user said that the order of the classes means something.")
    num_skipped_unreadable: int = Field(default=0, description="Images left out by --skip-unreadable.")
    skipped_unreadable: list[str] = Field(default=[], description="Their names, only with --show-names.")


class Thumbnail(Record):
    """One small image for the report, at most 96 pixels a side."""

    class_name: str
    png_base64: str


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
    feature_seconds: float
    features_from_cache: bool


class ScoreRecord(Record):
    """One score, whatever its values."""

    name: str
    title: str
    reference: str
    inputs: list[str]
    origin: str = Field(description="The distribution that brings it.")
    is_reference_probe: bool = False
    cost: str = Field(default="", description="What it costs, in words.")


class ScoreCell(Record):
    """One score of one model on this data set."""

    model: str
    score: str
    value: float | None
    reason: str | None = Field(default=None, description="Why there is no value.")
    standard_error: float | None = None
    low: float | None = None
    high: float | None = None
    no_interval_reason: str | None = None
    jackknife_values: list[float] = []
    shuffled_values: list[float] = []
    largest_shuffled: float | None = None
    above_shuffled: bool | None = Field(default=None, description="Is the value above every shuffled-label value?")
    parts: dict[str, float] = {}
    warnings: list[str] = []
    per_label: dict[str, float] = Field(default={}, description="With several labels an image: the value of each.")
    seconds: float = 0.0
    peak_bytes: int = 0


class RankRow(Record):
    """One line of the ranking by one score."""

    model: str
    role: Role
    rank: int | None = Field(description="1 is best; None for controls and models without a value.")
    not_separable_from: list[int] = Field(description="Ranks whose difference has an interval that contains 0.")


class PairRecord(Record):
    """The difference of one score between two candidates, in the order of the ranking."""

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    separable: bool


class RankingByScore(Record):
    """The order that one score gives."""

    score: str
    rows: list[RankRow]
    pairs: list[PairRecord]
    best_shuffled: float | None
    num_shuffled: int

    @property
    def num_ranked(self) -> int:
        """How many models have a rank; of one alone nothing can be said to be best or separable."""
        return sum(row.rank is not None for row in self.rows)


class AgreementRecord(Record):
    """How one score agrees with fine-tuned results that the user gave."""

    score: str
    family: str | None = Field(description="None: over all models.")
    num_models: int
    weighted_kendall: float | None
    p_value: float | None
    low: float | None
    high: float | None
    reason: str | None = None


class GroundTruthRecord(Record):
    """Fine-tuned results that the ranking was compared with."""

    column: str
    values: dict[str, float]
    unmatched: list[str] = []


class CheckRecord(Record):
    """One thing that was looked at, and what was found."""

    title: str
    severity: Severity
    text: str


class FindingRecord(CheckRecord):
    """What one check of the data found, with the images that it is about."""

    check: str = Field(description="Name of the check, for programs.")
    advice: str = Field(default="", description="What to do about it.")
    num_groups: int = Field(default=0, description="How many images, or groups of images, it is about.")
    images: list[list[int]] = Field(
        default=[], description="Row numbers, from 1, of images that belong together; at most 1000 groups are listed."
    )


class ColumnRecord(Record):
    """How much of the label one column of the data tells, measured on images that were held out."""

    column: str
    label: str | None = Field(description="With several labels an image: the one it tells most about.")
    balanced_accuracy: float = Field(description="Mean over the classes of the share of images told right.")
    chance: float = Field(description="The same for guessing: 1 / number of classes.")


class PriorRow(Record):
    """What is known of one model from other targets, and what follows for this one."""

    model: str
    num_targets: int = Field(description="Other targets on which the model was fine-tuned; 0 = nothing is known.")
    mean_rank: float | None = Field(description="Mean relative rank there: 0 = best, 1 = last; None = not known.")
    prior_rank: int | None = Field(description="Place by the static prior among the models that are known.")
    posterior_rank: int = Field(description="Place by prior and evidence together.")
    probability_best: float
    rank_low: int = Field(description="The rank is at least this one with probability 0.975.")
    rank_high: int


class PriorRecord(Record):
    """The static prior, a ranking that never looks at the images, and its aggregation with the scores."""

    targets: list[str] = Field(description="Other targets with results of at least two of the models.")
    origins: list[str] = Field(description="Who measured them.")
    rows: list[PriorRow] = Field(description="Most probably best first.")
    evidence: list[str] = Field(description="Scores that were aggregated with the prior.")
    fitted_on: str = Field(description="The published benchmark that says how much prior and evidence count.")
    shrinkage: float
    slope: float = Field(description="What one standard deviation of evidence adds; 0 = nothing beyond the prior.")
    noise: float
    summary: str


class Reference(Record):
    """A paper behind a number."""

    key: str
    text: str


class RankingRecord(Record):
    """Everything that ``crossgraft rank`` found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["ranking"] = "ranking"
    dataset: DatasetRecord
    models: list[ModelRecord]
    scores: list[ScoreRecord]
    cells: list[ScoreCell]
    primary_score: str
    primary_reason: str
    rankings: list[RankingByScore]
    advice: str
    ground_truth: GroundTruthRecord | None = None
    agreement: list[AgreementRecord] = []
    checks: list[CheckRecord] = []
    references: list[Reference] = []
    labels_left_out: dict[str, str] = Field(
        default={}, description="With several labels an image: labels that were not scored, and why."
    )
    prior: PriorRecord | None = Field(default=None, description="None: nothing is known of these models.")

    def cell(self, model: str, score: str) -> ScoreCell:
        """The cell of one model and one score."""
        return next(cell for cell in self.cells if cell.model == model and cell.score == score)

    def model(self, name: str) -> ModelRecord:
        """The model called ``name``."""
        return next(model for model in self.models if model.name == name)

    def ranking(self, score: str) -> RankingByScore:
        """The order by ``score``."""
        return next(ranking for ranking in self.rankings if ranking.score == score)


class DataCheckRecord(Record):
    """Everything that ``crossgraft check`` found; ``report.json`` is this record."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["data_check"] = "data_check"
    dataset: DatasetRecord
    split_names: list[str] = Field(description="Empty when the data have no split and none was asked for.")
    split_counts: list[list[int]] = Field(description="Images of each class in each split, in the order of the names.")
    is_sound: bool
    verdict: str
    findings: list[FindingRecord] = Field(description="Most severe first.")
    columns: list[ColumnRecord] = []
    image_names: dict[int, str] = Field(default={}, description="Names of listed images, only with --show-names.")
    references: list[Reference] = []


class SplitComparison(Record):
    """Accuracy of one probe under two ways to split the same images."""

    probe: str
    shuffled_accuracy: float
    shuffled_low: float
    shuffled_high: float
    grouped_accuracy: float
    grouped_low: float
    grouped_high: float
    explanation: str


class DemoRecord(Record):
    """What the demo shows around its ranking."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["demo"] = "demo"
    split_comparison: SplitComparison
    fine_tuned: list[FineTunedRow]
    limits: list[str] = Field(description="What the demo can not show, in sentences.")
    ranking: RankingRecord


class FineTunedRow(Record):
    """Test accuracy of one model after real fine-tuning."""

    model: str
    num_test_images: int
    linear_accuracy: float
    linear_low: float
    linear_high: float
    full_accuracy: float
    full_low: float
    full_high: float
    seeds: int


class StageRecord(Record):
    """Seconds that one stage took."""

    name: str
    seconds: float


class RunRecord(Record):
    """``run.json``: how a run directory was made, enough to make it again."""

    schema_version: int = SCHEMA_VERSION
    command: str
    command_line: str = Field(description="What to type to get the same run.")
    crossgraft_version: str
    config: dict[str, object]
    config_hash: str
    seed: int
    versions: dict[str, str]
    machine: dict[str, str]
    data_fingerprint: str | None = None
    weights_fingerprints: dict[str, str] = {}
    started_at: str
    finished_at: str | None = None
    state: Literal["running", "done", "interrupted", "failed"] = "running"
    stages: list[StageRecord] = []


class KnownResult(Record):
    """What fine-tuning one model on one target gave; a row of the results store."""

    schema_version: int = SCHEMA_VERSION
    model: str
    weights: str = Field(description="Fingerprint of the weights, or how they are known.")
    source: str = Field(description="What the weights were pretrained on.")
    target: str
    target_group: str = Field(default="", description="Targets of one group tell about each other; empty: alone.")
    target_fingerprint: str | None = Field(default=None, description="Of the images, where they were at hand.")
    protocol: str = Field(description="How the model was tuned and tested; only equal protocols are comparable.")
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    origin: str = Field(description="The paper, or the command, that measured it.")

    @property
    def identity(self) -> str:
        """The model with its source, as the prior tells models apart."""
        return f"{self.model}/{self.source}"

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two rows the same measurement."""
        target = self.target_fingerprint or self.target
        return (self.model, self.weights, self.source, target, self.protocol, self.metric)


class MeanRecord(Record):
    """A mean over targets with its 95 % interval (jackknife over targets; related targets are left out together)."""

    value: float | None
    low: float | None = None
    high: float | None = None
    num_targets: int = Field(description="Targets on which the quantity is defined.")


class MethodRecord(Record):
    """One way to order models, judged on every target of a benchmark."""

    name: str
    title: str
    role: Literal["score", "part of a score", "control", "consensus", "prior and score", "fitted"]
    weighted_kendall: list[float | None] = Field(description="One value a target; None where the score is constant.")
    mean: MeanRecord
    regret: MeanRecord = Field(description="Best result minus the result of the first choice.")
    gain: MeanRecord | None = Field(default=None, description="Weighted Kendall minus that of the static prior.")
    residual: MeanRecord | None = Field(default=None, description="Weighted Kendall with truth minus static prior.")
    other_means: dict[str, float] = Field(default={}, description="Means of other measures over the targets.")


class FriedmanRecord(Record):
    """Friedman's test over targets and Nemenyi's critical difference."""

    methods: list[str]
    mean_ranks: list[float]
    statistic: float
    p_value: float
    critical_difference: float
    cliques: list[list[int]]
    num_targets: int


class ReproductionRecord(Record):
    """How many printed cells the shipped numbers give again."""

    table: str
    num_cells: int
    num_equal: int
    num_undefined: int = 0
    decimals: int = 2


class ScenarioRecord(Record):
    """One benchmark: what fine-tuning gave for models × targets, and how well each method foresees it."""

    name: str
    title: str
    result: str = Field(description="What was measured after fine-tuning, for example AUC (fraction).")
    models: list[str]
    targets: list[str]
    target_groups: list[str] = Field(description="Targets of one group are left out together.")
    methods: list[MethodRecord]
    friedman: FriedmanRecord | None = None
    reproduction: ReproductionRecord | None = None
    notes: list[str] = []
    conclusion: str = ""


class CitedTable(Record):
    """Numbers as a paper prints them, and averages recomputed from them."""

    title: str
    source: str
    columns: list[str]
    rows: list[list[str | float | None]]
    decimals: int
    notes: list[str] = []


class SlipRecord(Record):
    """A printed number that does not follow from the paper's own data."""

    where: str
    printed: str
    recomputed: str
    consequence: str


class AnswerRecord(Record):
    """A question of the paper, answered from its data."""

    question: str
    answer: str


class PublishedRecord(Record):
    """Published results evaluated again, or a user's own table evaluated in the same way."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["published"] = "published"
    name: str
    title: str
    source: str
    scenarios: list[ScenarioRecord]
    cited: list[CitedTable] = []
    slips: list[SlipRecord] = []
    answers: list[AnswerRecord] = []
    references: list[Reference] = []


DemoRecord.model_rebuild()
