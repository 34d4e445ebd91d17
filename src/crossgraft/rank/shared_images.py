"""How much of the error of a value on val networks share, because all are measured on the same images.

With D_m the difference between val and test of network m on one target, b² the mean binomial variance of val, and errors on test,
which has many more images, left out,

    ρ = 1 − Var_m(D)/b²,

the variance robust (from the median absolute deviation), because of some networks val and test differ by more than chance. ρ is
the median over the published targets that have both, related ones as one. What is shared moves all networks alike and decides
nothing; √(1 − ρ) of the error is each network's own.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from crossgraft.rank.published.tables import published_tables
from crossgraft.words.formatting import joined as joined

NUM_VALIDATION = {"shift": 200}
"""Val images of a target, for each table with results on val."""


@cache
def shared_share(without_group: str | None = None) -> float:
    """ρ in [0, 0.95], learned without the targets of a group."""
    groups: dict[str, list[float]] = {}
    for table in published_tables():
        if table.validation is None or table.name not in NUM_VALIDATION:
            continue
        for val, test, group in zip(table.validation, table.results, table.groups, strict=True):
            if group != without_group:
                groups.setdefault(group, []).append(_share(val, test, NUM_VALIDATION[table.name]))
    return float(np.clip(np.median([np.mean(each) for each in groups.values()]), 0.0, 0.95))


def _share(val: np.ndarray, test: np.ndarray, num_val: int) -> float:
    known = np.isfinite(val) & np.isfinite(test)
    difference = (val - test)[known]
    spread = 1.4826 * float(np.median(np.abs(difference - np.median(difference))))
    return 1 - spread**2 / (float(np.mean(val[known] * (1 - val[known]))) / num_val)
