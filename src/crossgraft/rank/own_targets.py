"""Which networks go together on the targets of the user's own tables.

Given the deviations d_g of networks on own targets g, the covariance of the target at hand is the posterior mean of the
inverse Wishart of ``target_effects``, (κ S + Σ_g E[e_g e_gᵀ | d_g])/(κ + m). Networks that were not tried on g count by what
the others there make expected of them, e_g | d_g ~ N(B d_g, S − B S_k·) with B = S_·k (S_kk + level)⁻¹ (the E-step of
Dempster, Laird and Rubin, 1977).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.rank.relatives import Square
from crossgraft.rank.table_means import Deviations

FREE_LEVEL = 25.0
"""Variance of what is not known at all, the level of a target or a table; large beside 1, the spread of ranks."""


def learned_covariance(
    names: Sequence[str], prior: Square, tables: Sequence[Deviations], concentration: float
) -> Square:
    """Cov(e) of networks on a new target.

    Args:
        names: Networks, those of the tables among them.
        prior: S, what is expected of them.
        tables: The user's own.
        concentration: κ.
    """
    place = {name: number for number, name in enumerate(names)}
    total, count = concentration * prior, concentration
    for table in tables:
        several = np.isfinite(table.values).sum(axis=0)
        scale = np.sqrt(several / np.maximum(several - 1, 1))
        number = len(table.values)
        for row in table.values if number > 1 else ():
            known = np.flatnonzero(np.isfinite(row) & (several > 1))
            if len(known) > 1:
                at = np.array([place[table.networks[i]] for i in known])
                share = (number - 1) / number  # a mean over the table's own targets was taken out
                total = total + share * _expected_square(prior, at, ((row - table.means) * scale)[known])
                count += share
    return total / count


def _expected_square(prior: Square, known: np.ndarray, deviations: np.ndarray) -> Square:
    """E[e eᵀ | d]."""
    solved = np.linalg.solve(prior[np.ix_(known, known)] + FREE_LEVEL, prior[known]).T
    effect = solved @ deviations
    return np.outer(effect, effect) + prior - solved @ prior[known]
