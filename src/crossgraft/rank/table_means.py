"""Mean normal score of each network in each table of known results, related targets counted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

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
        num_groups: Groups that it is a mean of.
        squares: Sum of squared differences of the groups from it.
    """

    network: str
    table: str
    value: float
    num_groups: int
    squares: float = 0.0


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
        of_group = [column[kept == group][np.isfinite(column[kept == group])] for group in dict.fromkeys(kept.tolist())]
        means = [float(values.mean()) for values in of_group if len(values)]
        if means:
            squares = float(((np.array(means) - np.mean(means)) ** 2).sum())
            found.append(TableMean(network, label, float(np.mean(means)), len(means), squares))
    return found
