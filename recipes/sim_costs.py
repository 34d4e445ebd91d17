"""What ρSIM costs: a table of docs/results/sim.md."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence

from sim_pooled import Place, places_from_scratch, places_pretrained
from sim_tables import NOTHING, Key, StudyTables, head, row_of
from sim_variants import BASELINE, LONGER, PLACEBO, SIM
from study_trainings import ON

TABLE_11 = {"resnet20": "ResNet-18: 1.11, 1.04", "resnet32": "ResNet-34: 1.13, 1.05", "resnet56": "ResNet-50: 1.18, 1.07"}
"""Time and memory as multiples of the baseline's, on CUB."""
SIDES = {SIM: "with_sim", PLACEBO: "with_placebo"}
OF_SWEEPS = Place("cifar10_sweeps", "resnet20", BASELINE, SIM, PLACEBO)
Measure = Callable[[StudyTables, str], dict[Key, float]]


def starts_in_clock(piece: str, seed: int) -> bool:
    """Whether the start of the process on the GPU is in the time of the clock of such trainings."""
    return piece == "cifar10_depth" or (piece, seed) == ("cifar10", 0)


def costs_table(found: Mapping[str, StudyTables]) -> str:
    """One line for ρSIM and one for its placebo, of each set and network."""
    lines = head(
        "Set",
        "Network",
        "Variant",
        "Time, CPU",
        "Time of a step, CPU",
        "Time, GPU",
        "Memory, CPU",
        "Memory, GPU",
        "Parameters beside those of the network",
        "Published: time, memory",
    )
    for (name, model), places in _groups().items():
        for variant, side in SIDES.items():
            if any(_pairs(found, places, side, accuracy_of)):
                published = TABLE_11.get(model, "–") if variant == SIM else ""
                cells = _cells(found, places, side)
                lines.append(row_of([name, model, variant, *cells, published]))
    return "\n".join(lines) if len(lines) > 2 else NOTHING


def whole_trainings(found: Mapping[str, StudyTables], name: str, model: str, measure: Measure) -> str:
    """Medians of all trainings with ρSIM, and of those of the baseline for longer, as multiples of the baseline's."""
    places = _groups()[name, model]
    both = [ratios(found, places, side, measure) for side in ("with_sim", LONGER)]
    return ", ".join(f"{statistics.median(each):.2f}" if each else "–" for each in both)


def _groups() -> dict[tuple[str, str], list[Place]]:
    """Set and network → where it was trained with ρSIM and without."""
    groups: dict[tuple[str, str], list[Place]] = {}
    for place in (*places_from_scratch(), OF_SWEEPS, *places_pretrained()):
        groups.setdefault((place.piece.partition("_")[0], place.model), []).append(place)
    return groups


def _cells(found: Mapping[str, StudyTables], places: Sequence[Place], side: str) -> list[str]:
    model, tables = places[0].model, found[places[0].piece]
    step = tables.costs.get(model) if side == "with_sim" else None
    return [
        median_and_range(ratios(found, places, side, cpu_seconds)),
        "–" if step is None else f"{step.ratio:.2f}",
        _on_a_gpu(found, places, side),
        median_and_range(ratios(found, places, side, memory(on_gpu=False))),
        median_and_range(ratios(found, places, side, memory(on_gpu=True))),
        _parameters(tables, model, places[0].variant(side)),
    ]


def _parameters(tables: StudyTables, model: str, variant: str) -> str:
    """Of the reconstructors, and as a multiple of those of the network."""
    looks = [row for row in tables.looks if (row.model, row.variant) == (model, variant)]
    own = max((row.num_own_parameters for row in looks if row.num_own_parameters is not None), default=None)
    of_network = [row.num_parameters for row in tables.table.trainings if row.model == model and row.num_parameters]
    if own is None:
        return "–"
    return f"{own:,}" + (f" ({own / max(of_network):.2f})" if of_network else "")


def _on_a_gpu(found: Mapping[str, StudyTables], places: Sequence[Place], side: str) -> str:
    """A multiple; where every training has the start of its process in its clock, the seconds that a training takes more."""
    if known := ratios(found, places, side, clock_seconds):
        return median_and_range(known)
    more = [mine - other for mine, other in _pairs(found, places, side, all_clock_seconds)]
    return f"+{statistics.median(more):.0f} s" if more else "–"


def ratios(found: Mapping[str, StudyTables], places: Iterable[Place], side: str, measure: Measure) -> list[float]:
    """Of all pairs with the same seed and machine: a side as a multiple of the same training without."""
    return [mine / other for mine, other in _pairs(found, places, side, measure)]


def _pairs(found: Mapping[str, StudyTables], places: Iterable[Place], side: str, measure: Measure) -> list[tuple[float, float]]:
    pairs: list[tuple[float, float]] = []
    for place in places:
        tables, names = found[place.piece], (place.variant(side), place.without)
        mine, other = (measure(tables, name) for name in names)
        of_mine, of_other = (tables.machines(name) for name in names)
        pairs += [
            (mine[key], other[key]) for key in mine if key[0] == place.model and key in other and of_mine[key] == of_other[key]
        ]
    return pairs


def median_and_range(found: Sequence[float]) -> str:
    """The range where it is one."""
    if not found:
        return "–"
    ends = f"{min(found):.2f}", f"{max(found):.2f}"
    return f"{statistics.median(found):.2f}" + (f" ({' to '.join(ends)})" if ends[0] != ends[1] else "")


def accuracy_of(tables: StudyTables, variant: str) -> dict[Key, float]:
    """Of every finished training."""
    return tables.values(variant, "accuracy")


def cpu_seconds(tables: StudyTables, variant: str) -> dict[Key, float]:
    """Processor time of trainings on a CPU."""
    return {key: value for key, value in tables.values(variant, "cpu_seconds").items() if value}


def clock_seconds(tables: StudyTables, variant: str) -> dict[Key, float]:
    """Time of the clock of trainings on a GPU, without those that have the start of the process in it."""
    known = all_clock_seconds(tables, variant)
    return {key: seconds for key, seconds in known.items() if not starts_in_clock(tables.name, key[1])}


def all_clock_seconds(tables: StudyTables, variant: str) -> dict[Key, float]:
    """Time of the clock of all trainings on a GPU."""
    machines = tables.machines(variant)
    return {key: seconds for key, seconds in tables.values(variant, "seconds").items() if ON in machines[key]}


def memory(*, on_gpu: bool) -> Measure:
    """Peak of the memory of a step, in bytes."""

    def measured(tables: StudyTables, variant: str) -> dict[Key, float]:
        machines = tables.machines(variant)
        return {
            (row.model, row.seed): row.peak_bytes
            for row in tables.looks
            if row.variant == variant and row.peak_bytes and (ON in machines.get((row.model, row.seed), "")) == on_gpu
        }

    return measured
