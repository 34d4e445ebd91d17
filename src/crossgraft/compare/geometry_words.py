"""Geometry of two models, a line per measure."""

from __future__ import annotations

from crossgraft.compare.geometry_record import ModelGeometry, WeightsApart
from crossgraft.geometry.maps_record import FeatureMapRecord, FiltersRecord, TsneRecord
from crossgraft.geometry.record import ForgettingRecord, InterpolationPathRecord, SharpnessRecord
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
    said = [
        *([] if record.feature_map is None else _plane(record.feature_map)),
        *(_apart(each) for each in record.parameter_distance),
        *([] if record.interpolation_path is None else [path_in_words(record.interpolation_path)]),
        *([] if record.sharpness is None else [_sharp(record.sharpness)]),
        *([] if record.filters is None else [_filters(record.filters)]),
        *([] if record.attention is None else _shared(record)),
        *([] if record.tsne is None else [_inside(record.tsne)]),
    ]
    notes = [f"{TITLES[name]}: {note}" for name, several in record.notes.items() for note in several]
    return [*said, *notes]


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
    have = f"{len(record.between)} {'has' if len(record.between) == 1 else 'have'}"
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


def _apart(found: WeightsApart) -> str:
    relative = found.distance.relative
    share = "" if relative is None else f", {_THREE(relative)} of the length of those of {found.first}"
    length = NumberFormat.for_column([found.distance.l2])(found.distance.l2)
    return f"Weights of {found.second} lie {length} from those of {found.first}{share}."


def _sharp(record: SharpnessRecord) -> str:
    as_text = NumberFormat.for_column([row.many_steps for row in record.rows])
    values = ", ".join(f"{as_text(row.many_steps)} of {row.network}" for row in record.rows)
    return f"Sharpness ({counted(record.steps, 'step')}, radius {record.rho:g}): {values}."


def _filters(record: FiltersRecord) -> str:
    values = [
        f"{row.network} {'not assessable' if row.gabor_likeness is None else _TWO(row.gabor_likeness)}"
        for row in record.networks
    ]
    floor = next((row.random_likeness for row in record.networks if row.random_likeness is not None), None)
    beside = "" if floor is None else f" (random filters: {_TWO(floor)})"
    return f"Gabor-likeness of first filters: {', '.join(values)}{beside}."


def _inside(record: TsneRecord) -> str:
    gaps = ", ".join(f"{_TWO(row.gap)} of {row.network}" for row in record.networks)
    return f"Gap inside the class {record.class_name} (silhouette of two clusters of features): {gaps}."


def _shared(record: ModelGeometry) -> list[str]:
    found = record.attention
    if found is None:
        return []
    return [
        f"Attention of {row.network} shares {_TWO(row.overlap)} with that of {found.reference}."
        for row in found.networks
        if row.overlap is not None
    ]
