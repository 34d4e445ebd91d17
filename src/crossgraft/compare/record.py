"""Two models beside each other."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from crossgraft.data.record import DatasetRecord
from crossgraft.geometry.record import (
    AttentionRecord,
    FeatureMapRecord,
    FiltersRecord,
    ForgettingRecord,
    InterpolationPathRecord,
    SharpnessRecord,
    TsneRecord,
    WeightDistance,
)
from crossgraft.records.base import SCHEMA_VERSION, CheckRecord, Count, LooksRecord, Record, Reference, Share, SparseRecord

GeometryName = Literal["feature_map", "parameter_distance", "interpolation_path", "sharpness", "filters", "attention", "tsne"]


class WeightsApart(Record):
    """Weights of two of the models."""

    first: str = Field(description="Label of the reference.")
    second: str
    distance: WeightDistance
    num_weights: Count = Field(description="Numbers in front of the head that are compared.")


class ModelGeometry(Record):
    """What was asked for, by labels of the models; None where it does not apply, and ``notes`` say why."""

    asked: list[GeometryName]
    forgetting: ForgettingRecord | None = None
    feature_map: FeatureMapRecord | None = None
    parameter_distance: list[WeightsApart] = []
    interpolation_path: InterpolationPathRecord | None = None
    sharpness: SharpnessRecord | None = None
    filters: FiltersRecord | None = None
    attention: AttentionRecord | None = None
    source_attention: AttentionRecord | None = Field(default=None, description="The same for images of the source.")
    tsne: TsneRecord | None = None
    notes: dict[str, list[str]] = Field(default={}, description="Measure → what does not apply, and why.")


ComparedKind = Literal["pretrained", "fine-tuned", "features"]
PairOf = Literal["models", "change", "before"]
Measure = Literal[
    "cka", "cka_debiased", "rbf_cka", "cca", "svcca", "pwcca", "pwcca_reversed", "procrustes", "rsa", "rsa_euclidean"
]


class ComparedModel(SparseRecord):
    """One of the models."""

    sparse: ClassVar[frozenset[str]] = frozenset({"num_parameters", "multiply_adds"})

    label: str = Field(description="A, B, 'A before' or 'B before'.")
    name: str
    kind: ComparedKind
    architecture: str | None = Field(description="None for features on disk.")
    weights_fingerprint: str | None
    start_fingerprint: str | None = Field(description="Of the pretrained weights that it was fine-tuned from.")
    started_with: dict[str, str] = Field(
        default={}, description="Flags that named these weights when it was fine-tuned, without absolute paths."
    )
    num_features: Count
    num_parameters: Count | None = Field(default=None, description="None for features on disk.")
    multiply_adds: Count | None = Field(
        default=None, description="Of a forward pass of one image: #FLOPs as papers count them. None for features on disk."
    )
    layers: list[str] = Field(description="That were compared, first to last.")
    images_become: str | None = Field(description="Preprocessing in words.")
    probe_train_images: Count | None = Field(
        default=None, description="Training images of the linear probe that its predictions are of; None: its own head."
    )


class LayerGrid(Record):
    """A value for each pair of layers."""

    rows: list[str] = Field(description="Layers of the first model.")
    columns: list[str] = Field(description="Layers of the second.")
    values: list[list[float]] = Field(description="By row, then column; never missing.")
    estimator: str
    num_images: Count
    left_out_rows: dict[str, str] = Field(default={}, description="Layer → why it has no value.")
    left_out_columns: dict[str, str] = {}
    notes: list[str] = []


class MeasuredFeatures(Record):
    """One measure of the penultimate features."""

    measure: Measure
    value: float | None
    untrained: float | None = Field(description="Of two untrained networks of these architectures.")
    reason: str | None = Field(default=None, description="Why there is no value.")
    notes: list[str] = []


class LayerCca(Record):
    """CCA of one layer of each model by the protocol of the thesis."""

    layer: str
    other_layer: str
    value: float | None
    spread: float | None = Field(description="Standard deviation over draws.")
    untrained: float | None
    positions: Count = Field(description="Positions of feature maps in each draw.")
    positions_asked_for: Count
    channels: Count
    reason: str | None = None


class SharedMistakes(Record):
    """Whether two models fail on the same images."""

    num_images: Count
    value: Share = Field(description="P(both right or both wrong).")
    low: float | None = Field(description="95 % interval over patients, or images.")
    high: float | None
    no_interval_reason: str | None = None
    accuracy: Share
    other_accuracy: Share
    independent: Share = Field(description="a₁a₂ + (1 − a₁)(1 − a₂).")
    independent_low: float = Field(description="Central 95 % over permutations of mistakes.")
    independent_high: float
    p_value: Share
    kappa: float | None = Field(description="(P − P_independent) / (1 − P_independent).")
    agreement: Share
    by_probe: bool = Field(description="Whether at least one of the predictions is that of a linear probe.")


class ModelPair(Record):
    """Everything that was measured of two of the models."""

    first: str = Field(description="Label of the first.")
    second: str
    of: PairOf = Field(description="The two models; one of them and its start; the two starts.")
    cka: LayerGrid | None = None
    cka_untrained: LayerGrid | None = None
    cka_reason: str | None = None
    features: list[MeasuredFeatures] = []
    cca: list[LayerCca] = []
    cca_reason: str | None = None
    mistakes: SharedMistakes | None = None
    mistakes_reason: str | None = None

    @property
    def is_a_change(self) -> bool:
        """Whether the second is what fine-tuning made of the first."""
        return self.of == "change"

    def measured(self, measure: Measure) -> MeasuredFeatures | None:
        """One measure of the penultimate features."""
        return next((row for row in self.features if row.measure == measure), None)


class ModelComparisonRecord(Record):
    """What ``crossgraft compare`` finds."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["model_comparison"] = "model_comparison"
    models: list[ComparedModel]
    pairs: list[ModelPair] = Field(description="The two models first.")
    dataset: DatasetRecord | None = Field(description="None where both are features on disk.")
    num_images: Count = Field(description="Images that similarity is of.")
    images_in_words: str
    geometry: ModelGeometry | None = Field(default=None, description="None where none was asked for.")
    pool: Literal["mean", "flatten"]
    cca_preset: Literal["thesis", "released"]
    seed: int
    checks: list[CheckRecord] = []
    notes: list[str] = []
    looks: LooksRecord | None = None
    probe_looks: LooksRecord | None = Field(
        default=None, description="Looks at the test images of the linear probes on other images."
    )
    references: list[Reference] = []
    seconds: float

    @property
    def layers(self) -> dict[str, list[str]]:
        """Layers of each model that were compared, by label."""
        return {each.label: each.layers for each in self.models}

    @property
    def num_features(self) -> dict[str, int]:
        """Width of the penultimate features of each model, by label."""
        return {each.label: each.num_features for each in self.models}

    @property
    def probed(self) -> list[str]:
        """Labels of the models whose predictions are those of a linear probe."""
        return [each.label for each in self.models if each.probe_train_images is not None]

    def model(self, label: str) -> ComparedModel:
        """The model of this label."""
        return next(each for each in self.models if each.label == label)


ComparedModels = ModelComparisonRecord
