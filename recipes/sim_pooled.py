"""ρSIM beside the same without it and beside its placebo, over all pairs of trainings: the verdicts of docs/results/sim.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sim_tables import NOTHING, StudyTables, ahead, gaps, head, of_model, points, row_of
from sim_variants import BASELINE, PLACEBO, REGULARIZERS, SIM, pieces, with_placebo, with_sim
from studies import Difference, difference_of, verdict

METRICS = {"accuracy": ("accuracy, points", 1), "auc": ("AUC, × 100", 1), "nll": ("NLL saved, × 100", -1)}
"""Name and direction: more is better in all of them."""


class Place(NamedTuple):
    """Where trainings differ by ρSIM alone: a piece of the study, a network, and the variants to compare."""

    piece: str
    model: str
    without: str
    with_sim: str
    with_placebo: str


def places_from_scratch() -> list[Place]:
    """Networks with random weights, without the sweeps."""
    alone = [(name, model) for name in ("cifar10", "cifar10_depth") for model in pieces()[name].networks]
    (model,) = pieces()["cifar10_regularisers"].networks
    return [Place(name, model, BASELINE, SIM, PLACEBO) for name, model in alone] + [
        Place("cifar10_regularisers", model, name, with_sim(name), with_placebo(name)) for name in REGULARIZERS
    ]


def places_pretrained() -> list[Place]:
    """Networks with the weights of ImageNet."""
    medical = {name: piece for name, piece in pieces().items() if piece.is_pretrained}
    return [Place(name, model, BASELINE, SIM, PLACEBO) for name, piece in medical.items() for model in piece.networks]


def pooled_table(found: Mapping[str, StudyTables], places: Iterable[Place]) -> str:
    """Mean differences over pairs of trainings, with intervals, in every metric."""
    lines, places = head("First", "Second", "Metric", "First − second", "Ahead, pairs"), list(places)
    for first, second, sides in _comparisons():
        for metric, (title, _) in METRICS.items():
            difference = difference_in(found, places, metric, *sides)
            if difference is not None:
                lines.append(row_of([first, second, title, points(difference), ahead(difference)]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def pooled_verdicts(found: Mapping[str, StudyTables], places: Iterable[Place]) -> str:
    """What accuracy says, and which other metric is more than chance, a line per comparison."""
    places, lines = list(places), list[str]()
    for first, second, sides in _comparisons():
        every = {metric: difference_in(found, places, metric, *sides) for metric in METRICS}
        if (accuracy := every.pop("accuracy")) is None:
            continue
        beyond = [
            f"{METRICS[metric][0]}, {points(each)}"
            for metric, each in every.items()
            if each is not None and (each.low > 0 or each.high < 0)
        ]
        others = f" Intervals that exclude 0: {'; '.join(beyond)}." if beyond else ""
        lines.append(
            f"- **{first} over {second}**: {points(accuracy)} points of accuracy; {verdict(accuracy)}.{others}"
        )
    return "\n".join(lines)


def machines_told(found: Mapping[str, StudyTables], places: Iterable[Place]) -> str:
    """In how many pairs the two trainings are of different machines; nothing where there is none."""
    places, said = list(places), list[str]()
    for first, second, sides in _comparisons():
        pairs = [pair for place in places for pair in _machines(found[place.piece], place, *sides)]
        mixed = sum(one != other for one, other in pairs)
        if mixed:
            said.append(f"{mixed} of {len(pairs)} pairs of {first} and {second}")
    return (
        f" The two trainings ran on different machines, whose rounding differs, in {'; in '.join(said)}."
        if said
        else ""
    )


def _machines(found: StudyTables, place: Place, first: str, second: str) -> list[tuple[str, str]]:
    """Versions and machine of both trainings of each pair."""
    of_side = [
        {
            row.seed: row.versions
            for row in found.table.trainings
            if (row.model, row.variant) == (place.model, getattr(place, side))
        }
        for side in (first, second)
    ]
    return [(of_side[0][seed], of_side[1][seed]) for seed in of_side[0] if seed in of_side[1]]


def _comparisons() -> list[tuple[str, str, tuple[str, str]]]:
    return [
        ("ρSIM", "the same without", ("with_sim", "without")),
        ("ρSIM", "its placebo", ("with_sim", "with_placebo")),
        ("placebo", "the same without", ("with_placebo", "without")),
    ]


def difference_in(
    found: Mapping[str, StudyTables], places: Iterable[Place], metric: str, first: str, second: str
) -> Difference | None:
    """Mean of first − second over all pairs of trainings; positive where the first is better."""
    direction, differences = METRICS[metric][1], list[float]()
    for place in places:
        both = [
            of_model(found[place.piece].values(getattr(place, side), metric), place.model) for side in (first, second)
        ]
        differences += [direction * gap for gap in gaps(both[0], both[1])]
    return difference_of(differences)
