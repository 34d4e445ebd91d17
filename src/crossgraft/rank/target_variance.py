"""How much networks vary between the targets of a table: learned from its own targets as far as there are enough.

With s² the mean square of a table's networks about their means over groups of targets, on ν degrees of freedom, tables are alike
in so far as (Smyth, Statistical Applications in Genetics and Molecular Biology 3 (2004) 3, §6)

    s²_T | σ²_T ~ σ²_T χ²_ν/ν,    1/σ²_T ~ χ²_ν₀/(ν₀ s₀²),    E(σ²_T | s²_T) = (ν₀ s₀² + ν s²_T)/(ν₀ + ν − 2)

with s₀² and ν₀ by moments of log s² over the published tables: where all tables were alike, ν₀ would be infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import optimize, special

from crossgraft.rank.table_means import OWN, TableMean

LEAST_FREEDOM, MOST_FREEDOM = 4.0, 1e4
"""ν₀ of tables that differ as much as can be, so that σ² still has a mean that is known, and of tables that are all alike."""


def typical_variance(means: Sequence[TableMean], otherwise: tuple[float, float]) -> tuple[float, float]:
    """s₀² and ν₀ of the tables; ``otherwise`` where fewer than three have several targets."""
    spreads = [(square, freedom) for square, freedom in _within(means).values() if freedom >= 1 and square > 0]
    if len(spreads) < 3:
        return otherwise
    square, freedom = np.array(spreads).T
    logs = np.log(square) - special.digamma(freedom / 2) + np.log(freedom / 2)
    beyond = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    own = MOST_FREEDOM if beyond <= 2 / MOST_FREEDOM else max(2 * _trigamma_inverse(beyond), LEAST_FREEDOM)
    return float(np.exp(logs.mean() + special.digamma(own / 2) - np.log(own / 2))), own


def variance_of_tables(means: Sequence[TableMean], typical: float, typical_freedom: float) -> Mapping[str, float]:
    """σ²_T of each table."""
    return {
        table: (typical_freedom * typical + freedom * square) / (typical_freedom + freedom - 2)
        for table, (square, freedom) in _within(means).items()
    }


def variance_at_hand(means: Sequence[TableMean], typical: float, typical_freedom: float) -> float:
    """σ² of a new target: the user's own tables together are the table that it is of."""
    own = [spread for table, spread in _within(means).items() if table.startswith(OWN)]
    freedom = sum(each for _, each in own)
    squares = sum(square * each for square, each in own)
    return (typical_freedom * typical + squares) / (typical_freedom + freedom - 2)


def _within(means: Sequence[TableMean]) -> dict[str, tuple[float, float]]:
    """s² and ν of each table; a target has no level of its own, which costs one of its networks."""
    tables: dict[str, list[TableMean]] = {}
    for mean in means:
        tables.setdefault(mean.table, []).append(mean)
    found: dict[str, tuple[float, float]] = {}
    for table, members in tables.items():
        freedom = sum(each.num_groups - 1 for each in members) * (len(members) - 1) / len(members)
        found[table] = (sum(each.squares for each in members) / freedom if freedom > 0 else 0.0, freedom)
    return found


def _trigamma_inverse(value: float) -> float:
    """Where the trigamma function takes a value > 0; it falls everywhere."""

    def beyond(log: float) -> float:
        return float(special.polygamma(1, np.exp(log))) - value

    return float(np.exp(optimize.root_scalar(beyond, bracket=(np.log(1e-8), np.log(1e8)), xtol=1e-12).root))
