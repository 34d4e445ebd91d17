"""ρSIM beside the same without it, its placebo and what costs as much, over all pairs: tables of docs/results/sim.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sim_tables import NOTHING, StudyTables, gaps, head, marked, of_model, row_of
from sim_variants import BASELINE, LONGER, PLACEBO, REGULARIZERS, SIM, free, pieces, with_placebo, with_sim
from studies import Difference, difference_of

METRICS = {
    "accuracy": ("Accuracy, points", 1),
    "balanced_accuracy": ("Balanced accuracy, points", 1),
    "auc": ("AUC × 100", 1),
    "nll": ("NLL saved × 100", -1),
}
"""Name and direction: more is better in all of them."""
OF_EQUAL_CLASSES = ("accuracy", "auc", "nll")
"""Where all classes have as many test images, balanced accuracy is accuracy."""


class Place(NamedTuple):
    """Where trainings differ by ρSIM alone: a piece of the study, a network, and the variants to compare."""

    piece: str
    model: str
    without: str
    with_sim: str
    with_placebo: str

    def variant(self, side: str) -> str:
        """The variant of a side (``without``, ``with_sim``, ``with_placebo``); any other name is that of a variant."""
        return getattr(self, side) if side in self._fields else side


class Comparison(NamedTuple):
    """Two sides of each place; ``on_one_machine``: only pairs of which both were trained on the same one."""

    title: str
    first: str
    second: str
    on_one_machine: bool = False


OVER_WITHOUT = Comparison("ρSIM − the same training without it", "with_sim", "without")
OVER_PLACEBO = Comparison("ρSIM − its placebo", "with_sim", "with_placebo")
OVER_LONGER = Comparison("ρSIM − the baseline for longer", "with_sim", LONGER)
PLACEBO_OVER_WITHOUT = Comparison("placebo − the same training without it", "with_placebo", "without")


def comparisons_from_scratch() -> list[Comparison]:
    """Of networks with random weights."""
    alike = OVER_PLACEBO._replace(title=f"{OVER_PLACEBO.title}, both on a GPU or both on a CPU", on_one_machine=True)
    return [OVER_WITHOUT, OVER_PLACEBO, alike, PLACEBO_OVER_WITHOUT]


def comparisons_pretrained() -> list[Comparison]:
    """Of fine-tuning, each piece of which has the variants that are free or cost as much."""
    others = [Comparison(f"ρSIM − {name}", "with_sim", name) for name in free() if name != LONGER]
    longer = Comparison("the baseline for longer − the baseline", LONGER, "without")
    return [OVER_WITHOUT, OVER_PLACEBO, PLACEBO_OVER_WITHOUT, OVER_LONGER, longer, *others]


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


def differences_table(
    found: Mapping[str, StudyTables],
    groups: Mapping[str, Sequence[Place]],
    comparisons: Iterable[Comparison],
    metrics: Sequence[str],
) -> str:
    """Mean differences over the pairs of each group, with intervals, in every metric."""
    lines = head("Over", "Difference", *(METRICS[metric][0] for metric in metrics), "Pairs")
    comparisons = list(comparisons)
    for group, places in groups.items():
        pairs: dict[tuple[str, str], int] = {}
        for each in comparisons:
            every = [difference_in(found, places, metric, each) for metric in metrics]
            if every[0] is None or pairs.get(each[1:3]) == every[0].pairs:  # all pairs are on one machine
                continue
            pairs[each[1:3]] = every[0].pairs
            lines.append(row_of([group, each.title, *map(marked, every), str(every[0].pairs)]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def difference_in(
    found: Mapping[str, StudyTables], places: Iterable[Place], metric: str, comparison: Comparison
) -> Difference | None:
    """Mean of first − second over all pairs of trainings; positive where the first is better."""
    direction, differences = METRICS[metric][1], list[float]()
    for place in places:
        tables = found[place.piece]
        sides = [place.variant(side) for side in (comparison.first, comparison.second)]
        first, second = (of_model(tables.values(side, metric), place.model) for side in sides)
        if comparison.on_one_machine:
            of_first, of_second = (tables.machines(side) for side in sides)
            first = {key: value for key, value in first.items() if of_first[key] == of_second.get(key)}
        differences += [direction * gap for gap in gaps(first, second)]
    return difference_of(differences)


def machines_told(found: Mapping[str, StudyTables], places: Iterable[Place]) -> str:
    """In how many pairs the two trainings are of different machines; nothing where there is none."""
    places, said = list(places), list[str]()
    for each in (OVER_WITHOUT, OVER_PLACEBO, PLACEBO_OVER_WITHOUT):
        pairs = [pair for place in places for pair in _machines(found[place.piece], place, each)]
        mixed = sum(one != other for one, other in pairs)
        if mixed:
            said.append(f"{mixed} of {len(pairs)} pairs of {each.title}")
    return f" The two trainings ran on different machines in {'; in '.join(said)}." if said else ""


def _machines(found: StudyTables, place: Place, comparison: Comparison) -> list[tuple[str, str]]:
    """Versions and machine of both trainings of each pair."""
    first, second = (
        {key: machine for key, machine in found.machines(place.variant(side)).items() if key[0] == place.model}
        for side in (comparison.first, comparison.second)
    )
    return [(first[key], second[key]) for key in first if key in second]
