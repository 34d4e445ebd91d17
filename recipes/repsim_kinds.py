"""Kinds of networks in the study of docs/results/repsim.md, and the numbers of their trainings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from studies import Difference, difference_of
from study_rows import Table
from study_tables import Key, Tables, over_pairs


class Kind(NamedTuple):
    """Networks of one kind, trained in one way.

    Attributes:
        title: In tables.
        is_vit: Whether it is the ViT, or the networks with BatchNorm.
        ending: Of the names of its variants.
    """

    title: str
    is_vit: bool
    ending: str


KINDS = (
    Kind("LayerNorm (ViT)", True, ""),
    Kind("BatchNorm, train", False, ""),
    Kind("BatchNorm, frozen", False, ", frozen"),
    Kind("BatchNorm, adapt", False, ", adapt"),
)


def of_kind(tables: Tables, kind: Kind, vit: str) -> dict[str, Table]:
    """Rows of its networks, with names that have lost their ending; FULL and L2-SP of ``adapt`` are those of ``train``."""
    return {name: _renamed(table, kind, vit) for name, table in tables.items()}


def _renamed(table: Table, kind: Kind, vit: str) -> Table:
    def name_of(variant: str) -> str | None:
        if variant.endswith(kind.ending) and kind.ending:
            return variant.removesuffix(kind.ending)
        is_same = kind.ending == ", adapt" and variant in ("full", "l2_sp")
        is_linear = kind.ending == ", frozen" and variant == "linear"
        return variant if is_same or is_linear or (not kind.ending and ", " not in variant) else None

    def chosen(rows: Sequence[object]) -> tuple[object, ...]:
        found: list[object] = []
        for row in rows:
            name = name_of(row.variant)  # type: ignore[attr-defined]
            if name is not None and (row.model == vit) is kind.is_vit:  # type: ignore[attr-defined]
                found.append(type(row)(**{**vars(row), "variant": name}))
        return tuple(found)

    curve = tuple(row for row in table.curve if (row.model == vit) is kind.is_vit)
    return Table(chosen(table.trainings), curve, chosen(table.kept))  # type: ignore[arg-type]


def values(tables: Tables, variant: str, metric: str) -> dict[Key, float]:
    """Of every training of a variant that has the number."""
    return {
        (name, row.model, row.seed): value
        for name, table in tables.items()
        for row in (*table.trainings, *table.kept)
        if row.variant == variant and (value := getattr(row, metric, None)) is not None
    }


def comparable(tables: Tables, variant: str, metric: str) -> dict[Key, float]:
    """The same, of the seeds that were trained on every set and network of FULL; others mean another mix."""
    found = values(tables, variant, metric)
    places = {key[:2] for key in values(tables, "full", "accuracy")}
    whole = {seed for seed in {key[2] for key in found} if places == {key[:2] for key in found if key[2] == seed}}
    return {key: value for key, value in found.items() if key[2] in whole}


def paired(tables: Tables, first: str, second: str, metric: str) -> tuple[Difference | None, dict[Key, float]]:
    """First minus second over pairs of set and network, and each training's."""
    one, other = values(tables, first, metric), values(tables, second, metric)
    gaps = {key: one[key] - other[key] for key in one if key in other}
    return difference_of(over_pairs(gaps)), gaps


def reference_of(kind: Kind) -> str:
    """The similarity to the network that training started from."""
    return "cka_debiased_adapted" if kind.ending == ", adapt" else "cka_debiased"
