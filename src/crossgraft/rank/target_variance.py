"""How much networks vary between the targets of a table: learned from its own targets as far as there are enough.

With s² the mean square of a table's networks about their means over groups of targets, in units of what is expected of relatives
(``relatives``), on ν degrees of freedom, tables are alike in so far as (Smyth, Statistical Applications in Genetics and Molecular
Biology 3 (2004) 3, §6)

    s²_T | φ_T ~ φ_T χ²_ν/ν,    1/φ_T ~ χ²_ν₀/(ν₀ s₀²),    E(φ_T | s²_T) = (ν₀ s₀² + ν s²_T)/(ν₀ + ν − 2)

with s₀² and ν₀ by moments of log s² over the published tables: where all tables were alike, ν₀ would be infinite. What is not
known of φ_T and the λ_t of one target (``target_effects``) multiply, so that their logarithms add; the product is taken as
scaled inverse χ² again, with the variance of its logarithm, ψ₁(ν/2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import optimize, special

from crossgraft.rank.table_means import OWN

LEAST_FREEDOM, MOST_FREEDOM = 4.0, 1e4
"""ν₀ of tables that differ as much as can be, so that φ still has a mean that is known, and of tables that are all alike."""


class TableSpread(NamedTuple):
    """s² of a table on ν degrees of freedom."""

    table: str
    square: float
    freedom: float


def typical_variance(spreads: Sequence[TableSpread], otherwise: tuple[float, float]) -> tuple[float, float]:
    """s₀² and ν₀ of the tables; ``otherwise`` where fewer than three have several targets."""
    kept = [(each.square, each.freedom) for each in spreads if each.freedom >= 1 and each.square > 0]
    if len(kept) < 3:
        return otherwise
    square, freedom = np.array(kept).T
    logs = np.log(square) - special.digamma(freedom / 2) + np.log(freedom / 2)
    beyond = float(logs.var(ddof=1) - special.polygamma(1, freedom / 2).mean())
    own = MOST_FREEDOM if beyond <= 2 / MOST_FREEDOM else max(2 * _trigamma_inverse(beyond), LEAST_FREEDOM)
    return float(np.exp(logs.mean() + special.digamma(own / 2) - np.log(own / 2))), own


def table_variance(spread: TableSpread, typical: float, typical_freedom: float) -> float:
    """φ_T of a table."""
    return (typical_freedom * typical + spread.freedom * spread.square) / (typical_freedom + spread.freedom - 2)


def variance_at_hand(spreads: Sequence[TableSpread], typical: float, typical_freedom: float) -> TableSpread:
    """φ of a new target, and its degrees of freedom: the user's own tables together are the table that it is of."""
    own = [each for each in spreads if each.table.startswith(OWN)]
    freedom = sum(each.freedom for each in own)
    square = sum(each.square * each.freedom for each in own) / freedom if freedom else 0.0
    found = table_variance(TableSpread(OWN, square, freedom), typical, typical_freedom)
    return TableSpread(OWN, found, typical_freedom + freedom)


def freedom_of_product(first: float, second: float) -> float:
    """Degrees of freedom of the product of two scaled inverse χ²."""
    return 2 * _trigamma_inverse(float(special.polygamma(1, first / 2) + special.polygamma(1, second / 2)))


def _trigamma_inverse(value: float) -> float:
    """Where the trigamma function takes a value > 0; it falls everywhere."""

    def beyond(log: float) -> float:
        return float(special.polygamma(1, np.exp(log))) - value

    return float(np.exp(optimize.root_scalar(beyond, bracket=(np.log(1e-8), np.log(1e8)), xtol=1e-12).root))
