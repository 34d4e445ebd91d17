"""What ``crossgraft rank`` writes."""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from pydantic import ConfigDict, Field

from crossgraft.data.record import DatasetRecord
from crossgraft.models.record import ModelRecord, Role
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, Record, Reference, Share, SparseRecord
from crossgraft.words.formatting import NumberFormat

_END_OF_METHOD = re.compile(r", |;")
STATIC_PRIOR = "static_prior"
"""Stands for a score where the static prior is compared with fine-tuned results."""


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
    def method(self) -> str:
        """How the model was tuned, which a protocol says first."""
        return _END_OF_METHOD.split(self.protocol, maxsplit=1)[0]

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two rows the same measurement."""
        target = self.target_fingerprint or self.target
        return (self.model, self.weights, self.source, target, self.protocol, self.metric)


class PriorRow(Record):
    """What is known of one model from other targets."""

    model_config = ConfigDict(extra="ignore")  # an aggregation with scores that earlier versions wrote

    model: str
    num_targets: int = Field(description="Other targets on which the model was fine-tuned; 0 = nothing is known.")
    mean_rank: float | None = Field(description="Mean relative rank there: 0 = best, 1 = last; None = not known.")
    prior_rank: int | None = Field(description="Place by the static prior among the models that are known.")
    origins: list[str] = Field(default_factory=list, description="Who measured this model elsewhere.")


class PriorRecord(Record):
    """The static prior, a ranking that never looks at the images."""

    model_config = ConfigDict(extra="ignore")  # as above

    targets: list[str] = Field(description="Other targets with results of at least two of the models.")
    origins: list[str] = Field(description="Who measured them.")
    rows: list[PriorRow] = Field(description="The best first.")
    summary: str


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
    redrawn_values: list[float] = Field(
        default=[],
        description="Of a score that is drawn: its value, and those with other seeds; their spread is in the interval.",
    )
    shuffled_values: list[float] = []
    largest_shuffled: float | None = None
    above_shuffled: bool | None = Field(default=None, description="Is the value above every shuffled-label value?")
    parts: dict[str, float] = {}
    warnings: list[str] = []
    per_label: dict[str, float] = Field(default={}, description="With several labels per image: the value of each.")
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


Point = tuple[float, float]


class MappedPanel(Record):
    """Images in a plane, and how well their classes are told apart there, in all dimensions."""

    title: str
    points: list[Point] = Field(description="One per image that is drawn.")
    shares: tuple[Share, Share] | None = Field(
        description="Of the variance along each axis; None: there is one dimension, and the second only parts the dots."
    )
    fitted_share: Share | None = Field(
        default=None, description="Mean share of the own class among the 5 nearest images, of images that the map was fitted to."
    )
    held_out_share: Share | None = Field(default=None, description="The same of images that it was not fitted to.")
    accuracy: Share | None = Field(default=None, description="Of the head; of the nearest mean where there is none.")


class ProjectedFeatures(Record):
    """Features before and after NCA and LDA."""

    num_images: Count
    num_fitted: Count = Field(description="Images that NCA and LDA are fitted to.")
    classes: list[Count] = Field(default=[], description="Of each image that is drawn.")
    held_out: list[Count] = Field(default=[], description="Places of those drawn that nothing was fitted to.")
    panels: list[MappedPanel] = []
    reason: str | None = Field(default=None, description="Why a panel is missing.")


class ItmWay(Record):
    """Images that ITM did not learn from: E, E⁽ⁿ⁾ in the course of its training, and Ê."""

    eta: float
    num_images: Count
    classes: list[Count] = []
    panels: list[MappedPanel] = []
    reason: str | None = Field(default=None, description="Why there is none.")


class MappedModel(Record):
    """One of the best models."""

    model: str
    projected: ProjectedFeatures
    itm: ItmWay


class FeatureSpread(Record):
    """Size of the features of one model."""

    model: str
    mean: float = Field(description="Over all images and features.")
    standard_deviation: float
    dispersion: float = Field(description="dis of ITM's eq. 12: mean distance to the class mean, standardised, over √d.")


class NetworkKind(Record):
    """How one model is built, and how it was pretrained."""

    model: str
    architecture: str
    pretraining: str


class ItmByWeight(Record):
    """ITM of one model, with several weights of the pull in its loss."""

    model: str
    values: list[float]


class FeaturesRecord(Record):
    """What the features of the candidates look like."""

    seed: int
    spreads: list[FeatureSpread]
    kinds: list[NetworkKind]
    loss_weights: list[float] = Field(description="λ of ITM's eq. 8.")
    itm_by_weight: list[ItmByWeight]
    maps: list[MappedModel] = Field(description="Of the best models by the primary score.")


class RankingRecord(SparseRecord):
    """Everything that ``crossgraft rank`` found; ``report.json`` is this record."""

    sparse: ClassVar[frozenset[str]] = frozenset({"features"})

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
    advised: list[str] | None = Field(
        default=None,
        description="Models of the advice, the best first; empty: nothing speaks for any. None: written by an earlier version.",
    )
    caution: str | None = Field(default=None, description="What speaks against the best of them.")
    ground_truth: GroundTruthRecord | None = None
    agreement: list[AgreementRecord] = []
    checks: list[CheckRecord] = []
    references: list[Reference] = []
    labels_left_out: dict[str, str] = Field(
        default={}, description="With several labels per image: labels that were not scored, and why."
    )
    prior: PriorRecord | None = Field(default=None, description="None: nothing is known of these models.")
    features: FeaturesRecord | None = Field(default=None, description="None: nobody asked to see them.")

    def cell(self, model: str, score: str) -> ScoreCell:
        """The cell of one model and one score."""
        return next(cell for cell in self.cells if cell.model == model and cell.score == score)

    def model(self, name: str) -> ModelRecord:
        """The model called ``name``."""
        return next(model for model in self.models if model.name == name)

    def ranking(self, score: str) -> RankingByScore:
        """The order by ``score``."""
        return next(ranking for ranking in self.rankings if ranking.score == score)

    @property
    def primary_ranking(self) -> RankingByScore:
        """The order by the primary score."""
        return self.ranking(self.primary_score)

    def title(self, score: str) -> str:
        """The title of the score called ``score``, or of the static prior."""
        return (
            "Static prior (control)" if score == STATIC_PRIOR else next(each.title for each in self.scores if each.name == score)
        )

    @property
    def primary_title(self) -> str:
        """The title of the primary score."""
        return self.title(self.primary_score)

    def cells_by_model(self, score: str) -> dict[str, ScoreCell]:
        """The cells of one score."""
        return {cell.model: cell for cell in self.cells if cell.score == score}

    def number_format(self, score: str) -> NumberFormat:
        """The decimals of one score, the same everywhere on a page."""
        cells = self.cells_by_model(score).values()
        widths = [cell.high - cell.low for cell in cells if cell.high is not None and cell.low is not None]
        return NumberFormat.for_column([cell.value for cell in cells], interval_widths=widths)
