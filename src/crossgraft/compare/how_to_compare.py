"""What is asked for of a comparison, and what it found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from crossgraft.compare.geometry_record import GeometryName, ModelGeometry
from crossgraft.compare.record import ModelPair
from crossgraft.errors import UnknownNameError, UsageError

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
    pool: str = "mean"
    cca_preset: str = "thesis"
    linear_probe: bool = False
    seed: int = 0
    geometry: AskedGeometry = field(default_factory=AskedGeometry)


@dataclass(eq=False)
class ComparedModels:
    """What was measured.

    Attributes:
        pairs: The two models first.
        layers: Layers of each model that were compared.
        num_features: Width of the penultimate features of each.
        probed: Models whose predictions are those of a linear probe.
        geometry: Where weights and features lie.
        notes: Sentences on what could not be done.
    """

    pairs: list[ModelPair]
    layers: dict[str, list[str]]
    num_features: dict[str, int]
    geometry: ModelGeometry | None = None
    probed: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
