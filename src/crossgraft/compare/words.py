"""Two models beside each other, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from crossgraft.compare.options import asks_for_centre
from crossgraft.compare.record import GeometryName, Measure, ModelComparisonRecord, ModelGeometry, ModelPair, WeightsApart
from crossgraft.errors import UnknownNameError, UsageError
from crossgraft.geometry.record import (
    FeatureMapRecord,
    FiltersRecord,
    ForgettingRecord,
    InterpolationPathRecord,
    SharpnessRecord,
    TsneRecord,
)
from crossgraft.words.formatting import NumberFormat, counted

_TWO, _THREE = NumberFormat(decimals=2), NumberFormat(decimals=3)
TITLES = {
    "feature_map": "Features in one plane",
    "parameter_distance": "How far weights lie apart",
    "interpolation_path": "Between the two networks",
    "sharpness": "Sharpness",
    "filters": "First-layer filters",
    "attention": "Where the networks look",
    "source_attention": "Where the networks look, on images of the source",
    "tsne": "Inside one class",
}
"""Heading of each measure where it has no numbers of its own."""


def geometry_in_words(record: ModelGeometry) -> list[str]:
    """A sentence per measure, in the order of the page."""
    sentences = [
        *([] if record.feature_map is None else _plane(record.feature_map)),
        *(_apart(each) for each in record.parameter_distance),
        *([] if record.interpolation_path is None else [path_in_words(record.interpolation_path)]),
        *([] if record.sharpness is None else [_sharp(record.sharpness)]),
        *([] if record.filters is None else [_filters(record.filters)]),
        *([] if record.attention is None else _shared(record)),
        *([] if record.tsne is None else [_inside(record.tsne)]),
    ]
    notes = [f"{TITLES[name]}: {note}" for name, several in record.notes.items() for note in several]
    return [*sentences, *notes]


def forgetting_in_words(record: ForgettingRecord) -> str:
    """Accuracy of the linear probe of each body but the reference, and its difference."""
    home = next(row.accuracy for row in record.rows if row.network == record.reference)
    others = [
        f"{_THREE(row.accuracy)} of {row.network} ({_signed(row.difference)}, {_signed(row.difference_low)} to "
        f"{_signed(row.difference_high)})"
        for row in record.rows
        if row.network != record.reference
    ]
    beside = f", beside {', '.join(others)}" if others else ""
    return f"Linear probes on {record.data} have an accuracy of {_THREE(home)} of {record.reference}{beside}."


def path_in_words(record: InterpolationPathRecord) -> str:
    """How many networks between two have both loss and similarity between those of the ends."""
    inside = counted(len(record.points) - 2, "network")
    between = sum(record.between.values())
    have = f"{between} {'has' if between == 1 else 'have'}"
    return f"Of {inside} between {record.start} and {record.end}, {have} loss and CKA between those of the ends."


def _signed(value: float | None) -> str:
    return "unknown" if value is None else f"{'−' if value < 0 else '+'}{_THREE(abs(value))}"


def _plane(record: FeatureMapRecord) -> list[str]:
    return [
        f"{row.network} lies {_TWO(row.relative_distance)} radii from {record.reference} among features"
        f"{'' if row.overlap is None else f', with an overlap of {_TWO(row.overlap)} in one plane'}."
        for row in record.networks
        if row.network != record.reference
    ]


def _apart(weights: WeightsApart) -> str:
    relative = weights.distance.relative
    share = "" if relative is None else f", {_THREE(relative)} of the length of those of {weights.first}"
    length = NumberFormat.for_column([weights.distance.l2])(weights.distance.l2)
    return f"Weights of {weights.second} lie {length} from those of {weights.first}{share}."


def _sharp(record: SharpnessRecord) -> str:
    as_text = NumberFormat.for_column([row.many_steps for row in record.rows])
    values = ", ".join(f"{as_text(row.many_steps)} of {row.network}" for row in record.rows)
    return f"Sharpness ({counted(record.steps, 'step')}, radius {record.rho:g}): {values}."


def _filters(record: FiltersRecord) -> str:
    values = [
        f"{row.network} {'not assessable' if row.gabor_likeness is None else _TWO(row.gabor_likeness)}" for row in record.networks
    ]
    floor = next((row.random_likeness for row in record.networks if row.random_likeness is not None), None)
    beside = "" if floor is None else f" (random filters: {_TWO(floor)})"
    return f"Gabor-likeness of first filters: {', '.join(values)}{beside}."


def _inside(record: TsneRecord) -> str:
    gaps = ", ".join(f"{_TWO(row.gap)} of {row.network}" for row in record.networks)
    return f"Gap inside the class {record.class_name} (silhouette of two clusters of features): {gaps}."


def _shared(record: ModelGeometry) -> list[str]:
    maps = record.attention
    if maps is None:
        return []
    return [
        f"Attention of {row.network} shares {_TWO(row.overlap)} with that of {maps.reference}."
        for row in maps.networks
        if row.overlap is not None
    ]


GEOMETRY: tuple[GeometryName, ...] = get_args(GeometryName)
"""Everything that can be measured of weights and features, in the order of the page."""
CHEAP: tuple[GeometryName, ...] = ("feature_map", "parameter_distance", "filters")
"""What is measured where nobody names anything."""


@dataclass(frozen=True)
class AskedGeometry:
    """What is measured of weights and features.

    Attributes:
        names: In the order of the page.
        is_named: Whether the user named each of them, so that one that applies to no model is an error.
    """

    names: tuple[GeometryName, ...] = CHEAP
    is_named: bool = False


def read_geometry(given: str | Sequence[str] | None) -> AskedGeometry:
    """Names with commas or as a list, ``all`` or ``none``; None: what is cheap.

    Raises:
        UnknownNameError: There is no such measure; the message gives the nearest names.
        UsageError: ``none`` stands beside names.
    """
    if given is None:
        return AskedGeometry()
    if asks_for_centre(given):
        raise UsageError("centre is about the weights of two networks or more: crossgraft.compare_centre([…]).")
    names = [each.strip() for each in (given.split(",") if isinstance(given, str) else given)]
    for name in names:
        if name not in {*GEOMETRY, "all", "none"}:
            raise UnknownNameError("measure of geometry", name, [*GEOMETRY, "all", "none"])
    if "none" in names and len(names) > 1:
        raise UsageError(f"--geometry {','.join(names)} contradicts itself: leave out none, or everything else.")
    if "all" in names:
        return AskedGeometry(GEOMETRY)
    return AskedGeometry(tuple(name for name in GEOMETRY if name in names), is_named=True)


@dataclass(frozen=True)
class HowToCompare:
    """What is asked for.

    Attributes:
        layers: Layers of the first model, or of both; None: chosen.
        layers_b: Layers of the second.
        pool: ``mean`` or ``flatten``.
        cca_preset: ``thesis`` or ``released``.
        linear_probe: Whether models without a head for the classes get one.
        seed: Random seed.
        geometry: What is measured of weights and features.
    """

    layers: Sequence[str] | None = None
    layers_b: Sequence[str] | None = None
    pool: Literal["mean", "flatten"] = "mean"
    cca_preset: Literal["thesis", "released"] = "thesis"
    linear_probe: bool = False
    seed: int = 0
    geometry: AskedGeometry = field(default_factory=AskedGeometry)


NUMBERS = NumberFormat(decimals=3)
MEASURES: dict[Measure, str] = {
    "cka": "CKA",
    "cka_debiased": "CKA (debiased)",
    "rbf_cka": "RBF CKA",
    "cca": "CCA",
    "svcca": "SVCCA",
    "pwcca": "PWCCA (weights of the first)",
    "pwcca_reversed": "PWCCA (weights of the second)",
    "procrustes": "Procrustes distance",
    "rsa": "RSA (correlation)",
    "rsa_euclidean": "RSA (Euclidean)",
}
"""Each measure in a table."""
DISTANCES: frozenset[Measure] = frozenset({"procrustes"})
"""Measures that are 0, not 1, for the same features."""


def pair_in_words(pair: ModelPair) -> str:
    """What a pair is: ``A with B``, ``what fine-tuning changed in A``."""
    if pair.of == "change":
        label = pair.second if pair.first == f"{pair.second} before" else ""
        return f"{label} before and after fine-tuning" if label else "A before and B after fine-tuning"
    return "A with B before fine-tuning" if pair.of == "before" else "A with B"


def answer_in_words(record: ModelComparisonRecord) -> str:
    """How alike the features and the mistakes of the two models are, and what other images say of their bodies."""
    pair = record.pairs[0]
    forgotten = None if record.geometry is None else record.geometry.forgetting
    probed = "" if forgotten is None else forgetting_in_words(forgotten)
    labels = [pair.first, pair.second]
    names = labels if pair.is_a_change else [f"{label} ({record.model(label).name})" for label in labels]
    mistakes = _mistakes(pair, *names)
    parts = (_features(pair), _layer(pair), mistakes) if pair.is_a_change else (mistakes, _features(pair))
    return " ".join(each for each in (*parts, probed) if each)


def _features(pair: ModelPair) -> str:
    cka = pair.measured("cka_debiased")
    if cka is None or cka.value is None:
        reason = "" if cka is None or cka.reason is None else f": {cka.reason.rstrip('.')}"
        return f"The penultimate features cannot be compared{reason}."
    beside = "" if cka.untrained is None else f"; two untrained networks have {NUMBERS(cka.untrained)}"
    what = "Fine-tuning left the penultimate features at" if pair.is_a_change else "Penultimate features have"
    return f"{what} a debiased CKA of {NUMBERS(cka.value)}{beside}."


def _layer(pair: ModelPair) -> str:
    """The layer that changed most, of a network before and after."""
    grid = pair.cka
    if not pair.is_a_change or grid is None or grid.rows != grid.columns or len(grid.rows) < 2:
        return ""
    own = [grid.values[place][place] for place in range(len(grid.rows))]
    least = min(range(len(own)), key=own.__getitem__)
    return f"The layer that changed most is {grid.rows[least]} ({NUMBERS(own[least])})."


def _mistakes(pair: ModelPair, first: str, second: str) -> str:
    mistakes = pair.mistakes
    if mistakes is None:
        return ""
    ends = "no interval"
    if mistakes.low is not None and mistakes.high is not None:
        ends = f"95\N{NO-BREAK SPACE}% interval {NUMBERS(mistakes.low)} to {NUMBERS(mistakes.high)}"
    than = "not told from"  # permutations take images as independent, which those of a patient are not: both must say so
    if mistakes.value > mistakes.independent_high and (mistakes.low or 0.0) > mistakes.independent:
        than = "more often than with"
    elif mistakes.value < mistakes.independent_low and (1.0 if mistakes.high is None else mistakes.high) < mistakes.independent:
        than = "less often than with"
    return (
        f"{first} is right on {NUMBERS(mistakes.accuracy)} of {counted(mistakes.num_images, 'image')}, {second} on "
        f"{NUMBERS(mistakes.other_accuracy)}. Both are right or both wrong on {NUMBERS(mistakes.value)} ({ends}), {than} "
        f"mistakes that have nothing to do with each other ({NUMBERS(mistakes.independent)})."
    )
