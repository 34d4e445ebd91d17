"""What the study of docs/results/similarity.md keeps: small CSV tables of each set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from study_rows import as_csv, read_rows

from crossgraft.compare.record import LayerGrid, ModelComparisonRecord, ModelPair, SharedMistakes
from crossgraft.storage.atomic import write_atomically

PENULTIMATE = "penultimate"
"""Name of the features in front of the head, among layers."""


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """How alike two networks are in one layer.

    Attributes:
        variant: How they were fine-tuned; ``before`` where neither was.
        seed: Of the training, and of what is drawn.
        first: Source of the first network.
        second: Of the second; the same where fine-tuning changed it; ``random`` without weights.
        of: ``change``, ``models``, ``before``, ``random`` or ``random before``.
        measure: ``cka`` (debiased, of means over positions) or ``cca`` (of the thesis).
        place: Among the compared layers, from 0; −1: penultimate features.
        layer: Its name.
        value: Similarity.
        untrained: Of two untrained networks; None where none was measured.
        positions: CCA: positions of maps in each draw.
        channels: CCA: channels in each draw.
        settings: What else decides the numbers.
    """

    variant: str
    seed: int
    first: str
    second: str
    of: str
    measure: str
    place: int
    layer: str
    value: float | None = None
    untrained: float | None = None
    positions: int | None = None
    channels: int | None = None
    settings: str = ""

    @property
    def key(self) -> tuple[str, int, str, str, str, str, int]:
        """One number has it."""
        return self.variant, self.seed, self.first, self.second, self.of, self.measure, self.place


@dataclass(frozen=True, kw_only=True)
class MistakesRow:
    """Whether two networks fail on the same test images.

    Attributes:
        variant: How they were fine-tuned; ``before``: a linear probe each.
        seed: Of the training.
        first: Source of the first network.
        second: Of the second.
        num_images: Test images.
        value: P(both right or both wrong).
        accuracy: Of the first.
        other_accuracy: Of the second.
        independent: P if mistakes were independent.
        independent_low: Lower end of the central 95 % of it over permutations.
        independent_high: Upper end.
        p_value: Of independence.
        kappa: (P − independent) / (1 − independent); None where that is 0 / 0.
        settings: What else decides the numbers.
    """

    variant: str
    seed: int
    first: str
    second: str
    num_images: int
    value: float
    accuracy: float
    other_accuracy: float
    independent: float
    independent_low: float
    independent_high: float
    p_value: float
    kappa: float | None = None
    settings: str = ""

    @property
    def key(self) -> tuple[str, int, str, str]:
        """One number has it."""
        return self.variant, self.seed, self.first, self.second


@dataclass(frozen=True, kw_only=True)
class ClassesRow:
    """How much of the similarity of penultimate features is what tells classes apart.

    Attributes:
        variant: ``before``, or how both were fine-tuned.
        seed: Of the training.
        first: Source of the first network.
        second: Of the second.
        share: Share of the variance of the first network's features that lies between classes.
        other_share: Of the second's.
        cka: Debiased CKA on test.
        cka_within: The same with the mean of its class taken from each feature.
    """

    variant: str
    seed: int
    first: str
    second: str
    share: float
    other_share: float
    cka: float
    cka_within: float

    @property
    def key(self) -> tuple[str, int, str, str]:
        """One number has it."""
        return self.variant, self.seed, self.first, self.second


@dataclass(frozen=True, kw_only=True)
class GeometryRow:
    """Where one fine-tuned network lies.

    Attributes:
        model: Network.
        variant: Method.
        seed: Of everything.
        accuracy: On test.
        loss: On test.
        one_step: Rise of the loss after one step of ``rho`` along the gradient.
        many_steps: Largest rise that several steps found.
        gradient: Length of the gradient.
        cka_debiased: Of penultimate features on test, to the pretrained network.
        to_start: Distance of the weights to the pretrained ones.
        to_centre: To the mean of the runs of the same method, network and seed on all sets; None until all are there.
        accuracy_at_centre: Of that mean under the head of this run.
        distance: Centroid to that of the pretrained network, over the root mean square radius of the latter.
        overlap: Overlap of the densities in the plane of the first two principal components of the union.
        gap: Silhouette of two clusters of the features of the commonest test class.
        drawn_gap: The same in the t-SNE map.
        trustworthiness: Of the t-SNE map.
        attention: Overlap of the patches that hold a fifth of the attention with those of the pretrained network, on test.
        source_attention: The same on images of the source.
        probe_natural: Accuracy of a linear probe on natural images.
        probe_medical: The same on another medical set.
        settings: What else decides the numbers.
    """

    model: str
    variant: str
    seed: int
    accuracy: float | None = None
    loss: float | None = None
    one_step: float | None = None
    many_steps: float | None = None
    gradient: float | None = None
    cka_debiased: float | None = None
    to_start: float | None = None
    to_centre: float | None = None
    accuracy_at_centre: float | None = None
    distance: float | None = None
    overlap: float | None = None
    gap: float | None = None
    drawn_gap: float | None = None
    trustworthiness: float | None = None
    attention: float | None = None
    source_attention: float | None = None
    probe_natural: float | None = None
    probe_medical: float | None = None
    settings: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        """One network has it."""
        return self.model, self.variant, self.seed


@dataclass(frozen=True, kw_only=True)
class PointRow:
    """A test image in the plane, for the drawing of one seed.

    Attributes:
        model: Network.
        variant: Method.
        kind: ``pca``, or ``tsne`` with the images of one class.
        image: Its place among the test images.
        x: Along the first axis.
        y: Along the second.
    """

    model: str
    variant: str
    kind: str
    image: int
    x: float
    y: float

    @property
    def key(self) -> tuple[str, str, str, int]:
        """One point has it."""
        return self.model, self.variant, self.kind, self.image


RowT = TypeVar("RowT", LayerRow, MistakesRow, ClassesRow, GeometryRow, PointRow)
ENDINGS: dict[type, str] = {
    LayerRow: "layers",
    MistakesRow: "mistakes",
    ClassesRow: "classes",
    GeometryRow: "geometry",
    PointRow: "points",
}


def file_of(folder: Path, name: str, kind: type) -> Path:
    return folder / f"{name}-{ENDINGS[kind]}.csv"


def read_all(folder: Path, name: str, kind: type[RowT]) -> list[RowT]:
    """Rows of a set; none where there is no file."""
    return read_rows(file_of(folder, name, kind), kind)


def add_rows(folder: Path, name: str, rows: Sequence[RowT]) -> None:
    """The file whole or not at all; older rows of the same key go."""
    kind = type(rows[0])
    merged = {row.key: row for row in [*read_all(folder, name, kind), *rows]}
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(file_of(folder, name, kind), as_csv(kind, [merged[key] for key in sorted(merged)]))


def layer_rows(record: ModelComparisonRecord, names: dict[str, str], *, variant: str, seed: int, settings: str) -> list[LayerRow]:
    """Similarity of corresponding layers of all pairs of a comparison.

    Args:
        record: What ``compare_models`` found.
        names: Label of a model → source.
        variant: How both were fine-tuned.
        seed: Of the training.
        settings: What else decides the numbers.
    """
    rows: list[LayerRow] = []
    for pair in record.pairs:
        first, second = names[pair.first], names[pair.second]
        of: str = pair.of
        if "random" in names.values():
            if of == "change":
                continue
            of = {"models": "random", "before": "random before"}[of]
        is_before = of in ("before", "random before")
        of_pair = {"variant": "before", "settings": ""} if is_before else {"variant": variant, "settings": settings}
        rows += [LayerRow(seed=seed, first=first, second=second, of=of, **of_pair, **each) for each in _numbers(pair)]
    return rows


def _numbers(pair: ModelPair) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    if pair.cka is not None:
        untrained = {} if pair.cka_untrained is None else _diagonal(pair.cka_untrained)
        for place, (layer, value) in enumerate(_diagonal(pair.cka).items()):
            found.append(_cells("cka", place, layer, value, untrained.get(layer)))
    features = pair.measured("cka_debiased")
    if features is not None:
        found.append(_cells("cka", -1, PENULTIMATE, features.value, features.untrained))
    for place, each in enumerate(pair.cca):
        cells = _cells("cca", place, each.layer, each.value, each.untrained)
        found.append({**cells, "positions": each.positions, "channels": each.channels})
    return found


def _diagonal(grid: LayerGrid) -> dict[str, float]:
    """Of each layer with the layer of the same name."""
    places = {name: place for place, name in enumerate(grid.columns)}
    return {name: grid.values[row][places[name]] for row, name in enumerate(grid.rows) if name in places}


def _cells(measure: str, place: int, layer: str, value: float | None, untrained: float | None) -> dict[str, object]:
    rounded = {"value": value, "untrained": untrained}
    return {
        "measure": measure, "place": place, "layer": layer,
        **{name: None if number is None else round(number, 5) for name, number in rounded.items()},
    }  # fmt: skip


def mistakes_row(found: SharedMistakes, **known: object) -> MistakesRow:
    """Of a comparison."""
    names = (
        "value", "accuracy", "other_accuracy", "independent", "independent_low", "independent_high", "p_value", "kappa",
    )  # fmt: skip
    numbers = {name: getattr(found, name) for name in names}
    rounded = {name: None if value is None else round(value, 5) for name, value in numbers.items()}
    return MistakesRow(num_images=found.num_images, **rounded, **known)  # type: ignore[arg-type]
