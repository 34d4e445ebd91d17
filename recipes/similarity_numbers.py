"""Numbers of docs/results/similarity.md: each claim as differences of a set and seed, and their mean with an interval."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats
from similarity_rows import ClassesRow, GeometryRow, LayerRow, MistakesRow, PointRow, read_all
from similarity_sets import RANDOM, SOURCES
from studies import Target
from study_rows import Table, read_table

from crossgraft.statistics import spearman

Unit = tuple[str, int]
"""Set and seed."""
Gaps = Mapping[Unit, float]
PARTS = ("all", "first half", "second half")
_LARGEST = 0.999
"""Correlation whose z is still a number."""


class Study(NamedTuple):
    """All rows, by set."""

    trainings: Mapping[str, Table]
    layers: Mapping[str, Sequence[LayerRow]]
    mistakes: Mapping[str, Sequence[MistakesRow]]
    geometry: Mapping[str, Sequence[GeometryRow]]
    points: Mapping[str, Sequence[PointRow]]
    classes: Mapping[str, Sequence[ClassesRow]]

    @classmethod
    def read(cls, folder: Path, targets: Sequence[Target]) -> Study:
        """What is there."""
        names = [target.name for target in targets]
        return cls(
            {name: read_table(folder, name) for name in names},
            {name: read_all(folder, name, LayerRow) for name in names},
            {name: read_all(folder, name, MistakesRow) for name in names},
            {name: read_all(folder / "kept", name, GeometryRow) for name in names},
            {name: read_all(folder / "kept", name, PointRow) for name in names},
            {name: read_all(folder, name, ClassesRow) for name in names},
        )


def aucs(study: Study, variant: str, source: str) -> dict[Unit, float]:
    return {
        (name, row.seed): row.auc
        for name, table in study.trainings.items()
        for row in table.trainings
        if (row.variant, row.model) == (variant, source) and row.auc is not None
    }


def gains(study: Study, variant: str, source: str, *, relative: bool) -> dict[Unit, float]:
    """AUC beyond that of random weights of the same set and seed; as a share of it where it is relative."""
    base = aucs(study, "scratch", RANDOM)
    return {
        unit: (auc - base[unit]) / (base[unit] if relative else 1)
        for unit, auc in aucs(study, variant, source).items()
        if unit in base
    }


def chosen(study: Study, *, measure: str, of: str, variant: str, source: str | None = None) -> list[tuple[Unit, LayerRow]]:
    """Rows of layers with a value; ``source``: of this one alone."""
    return [
        ((name, row.seed), row)
        for name, rows in study.layers.items()
        for row in rows
        if (row.measure, row.of, row.variant) == (measure, of, variant) and row.value is not None and source in (None, row.first)
    ]


def by_unit(
    rows: Sequence[tuple[Unit, LayerRow]], part: str = "all", number: Callable[[LayerRow], float | None] = lambda row: row.value
) -> dict[Unit, float]:
    """Mean over layers of a part of the network and over pairs of networks."""
    places = sorted({row.place for _, row in rows if row.place >= 0})
    middle = len(places) // 2
    wanted = {"all": places, "first half": places[:middle], "second half": places[middle:]}[part]
    found: dict[Unit, list[float]] = {}
    for unit, row in rows:
        value = number(row)
        if row.place in wanted and value is not None:
            found.setdefault(unit, []).append(value)
    return {unit: statistics.fmean(values) for unit, values in found.items()}


def minus(first: Gaps, second: Gaps) -> dict[Unit, float]:
    """Where both are."""
    return {unit: first[unit] - second[unit] for unit in sorted(first) if unit in second}


def changed_less(study: Study, measure: str, variant: str, part: str) -> dict[Unit, float]:
    """Similarity before and after of ImageNet minus that of the other sources (Fig. 3.3a)."""
    found = {
        source: by_unit(chosen(study, measure=measure, of="change", variant=variant, source=source), part) for source in SOURCES
    }
    others = [found[source] for source in SOURCES if source != "imagenet"]
    both = set.intersection(*(set(each) for each in others))
    return minus(found["imagenet"], {unit: statistics.fmean(each[unit] for each in others) for unit in both})


def after_minus_before(study: Study, measure: str, variant: str, part: str) -> dict[Unit, float]:
    """Similarity of two sources after fine-tuning minus that before (Fig. 3.3b)."""
    after = by_unit(chosen(study, measure=measure, of="models", variant=variant), part)
    return minus(after, by_unit(chosen(study, measure=measure, of="before", variant="before"), part))


def after_minus_untrained(study: Study, measure: str, variant: str, part: str) -> dict[Unit, float]:
    """The same minus that of two random initialisations."""
    rows = chosen(study, measure=measure, of="models", variant=variant)
    return minus(by_unit(rows, part), by_unit(rows, part, lambda row: row.untrained))


def after_minus_random(study: Study, measure: str, variant: str, part: str) -> dict[Unit, float]:
    """The same minus that of each of the two with a random initialisation."""
    after = by_unit(chosen(study, measure=measure, of="models", variant=variant), part)
    return minus(after, by_unit(chosen(study, measure=measure, of="random", variant="full"), part))


def mistakes(study: Study, variant: str, number: Callable[[MistakesRow], float | None]) -> dict[Unit, float]:
    """Mean over pairs of sources."""
    found: dict[Unit, list[float]] = {}
    for name, rows in study.mistakes.items():
        for row in rows:
            value = number(row)
            if row.variant == variant and value is not None:
                found.setdefault((name, row.seed), []).append(value)
    return {unit: statistics.fmean(values) for unit, values in found.items()}


class Points(NamedTuple):
    """Similarity of a layer before and after, and the relative gain; one of each set, seed and way to fine-tune."""

    units: list[Unit]
    similar: list[float]
    gain: list[float]


def points_of(study: Study, measure: str, source: str, place: int) -> Points:
    """Of one source and layer (Fig. 3.6)."""
    found = Points([], [], [])
    for variant in ("full", "head-first"):
        gain = gains(study, variant, source, relative=True)
        for unit, row in chosen(study, measure=measure, of="change", variant=variant, source=source):
            if row.place == place and unit in gain and row.value is not None:
                for column, value in zip(found, (unit, row.value, gain[unit]), strict=True):
                    column.append(value)  # type: ignore[arg-type]
    return found


def within_sets(points: Points) -> Points:
    """Each number minus the mean of its set: which set is harder says nothing about layers."""
    names = [unit[0] for unit in points.units]
    centred = [
        [
            value - statistics.fmean(other for other, its in zip(column, names, strict=True) if its == name)
            for value, name in zip(column, names, strict=True)
        ]
        for column in (points.similar, points.gain)
    ]
    return Points(points.units, *centred)


def correlation(points: Points) -> tuple[float, float, float] | None:
    """Spearman with a 95 % interval; None of fewer than four sets and seeds.

    Fisher's z with the standard error of Bonett and Wright (Psychometrika 65 (2000) 23), n being the number of sets and seeds:
    ways to fine-tune within one are no independent points.
    """
    num_units = len(set(points.units))
    if num_units < 4:
        return None
    found = spearman(np.array(points.similar), np.array(points.gain))
    z = np.arctanh(np.clip(found, -_LARGEST, _LARGEST))
    half = stats.norm.ppf(0.975) * np.sqrt((1 + found**2 / 2) / (num_units - 3))
    return found, float(np.tanh(z - half)), float(np.tanh(z + half))


def of_method(study: Study, model: str, method: str, column: str) -> dict[Unit, float]:
    """A column of the geometry of one network; the distance to the centre of two sets is one number, not one of each set."""
    rows = [(name, row) for name, rows in study.geometry.items() for row in rows]
    return {
        ("" if column == "to_centre" and len(study.geometry) == 2 else name, row.seed): value
        for name, row in rows
        if (row.model, row.variant) == (model, method) and (value := getattr(row, column)) is not None
    }
