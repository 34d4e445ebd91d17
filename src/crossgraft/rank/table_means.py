"""Mean normal score of each network in each table of known results, related targets counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.rank.aggregate import normal_scores
from crossgraft.records import KnownResult

OWN = "own"
"""What names of the user's own tables begin with."""


class TableMean(NamedTuple):
    """Mean normal score of one network over the groups of targets of one table.

    Attributes:
        network: Name of its weights.
        table: Name of the table.
        value: The mean.
        of_group: Mean over the targets of each group.
    """

    network: str
    table: str
    value: float
    of_group: Mapping[str, float]

    @property
    def num_groups(self) -> int:
        """Groups that it is a mean of."""
        return len(self.of_group)


class Deviations(NamedTuple):
    """One table as a matrix.

    Attributes:
        table: Name of the table.
        networks: Its networks.
        means: Mean of each over its groups.
        values: Groups × networks; NaN where a network was not tuned.
    """

    table: str
    networks: tuple[str, ...]
    means: Float64[np.ndarray, " num_networks"]
    values: Float64[np.ndarray, "num_groups num_networks"]

    def complete(self) -> Deviations:
        """The networks that were tuned on every one of at least two groups; none where there is one group alone."""
        kept = np.flatnonzero(np.isfinite(self.values).all(axis=0)).tolist() if len(self.values) > 1 else []
        names = tuple(self.networks[place] for place in kept)
        return Deviations(self.table, names, self.means[kept], self.values[:, kept])


def table_means(
    rows: Sequence[KnownResult], names: Mapping[tuple[str, ...], str], own: frozenset[tuple[str, ...]]
) -> list[TableMean]:
    """Mean normal score of each network in each table, related targets counted once.

    Args:
        rows: Known results; rows of one protocol and metric are a table.
        names: Name of the weights of each row, by its key.
        own: Keys of the rows that are the user's own.
    """
    tables: dict[tuple[bool, str, str], list[KnownResult]] = {}
    for row in rows:
        tables.setdefault((row.key in own, row.protocol, row.metric), []).append(row)
    found: list[TableMean] = []
    for number, ((is_own, _, _), members) in enumerate(tables.items()):
        label = f"{OWN}/{number}" if is_own else str(number)
        found += _means_of(label, members, names)
    return found


def _means_of(label: str, rows: Sequence[KnownResult], names: Mapping[tuple[str, ...], str]) -> list[TableMean]:
    networks = list(dict.fromkeys(names[row.key] for row in rows))
    targets = list(dict.fromkeys(row.target_fingerprint or row.target for row in rows))
    place, of_target = {name: i for i, name in enumerate(networks)}, {name: i for i, name in enumerate(targets)}
    values = np.full((len(targets), len(networks)), np.nan)
    groups = [""] * len(targets)
    for row in rows:
        target = of_target[row.target_fingerprint or row.target]
        values[target, place[names[row.key]]] = row.value
        groups[target] = row.target_group or row.target
    ranked = np.isfinite(values).sum(axis=1) > 1
    if not ranked.any():
        return []
    z, kept = normal_scores(values[ranked]), np.asarray(groups)[ranked]
    found: list[TableMean] = []
    for network, column in zip(networks, z.T, strict=True):
        known = np.isfinite(column)
        of_group = {
            group: float(column[known & (kept == group)].mean()) for group in dict.fromkeys(kept[known].tolist())
        }
        if of_group:
            found.append(TableMean(network, label, float(np.mean(list(of_group.values()))), of_group))
    return found


def deviations_of(means: Sequence[TableMean]) -> list[Deviations]:
    """The tables as matrices."""
    tables: dict[str, list[TableMean]] = {}
    for mean in means:
        tables.setdefault(mean.table, []).append(mean)
    found: list[Deviations] = []
    for table, members in tables.items():
        groups = list(dict.fromkeys(group for mean in members for group in mean.of_group))
        values = np.array([[mean.of_group.get(group, np.nan) for mean in members] for group in groups])
        names = tuple(mean.network for mean in members)
        found.append(Deviations(table, names, np.array([mean.value for mean in members]), values))
    return found
