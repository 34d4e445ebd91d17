"""Holm's correction for many tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values, in the given order: those up to α are errors with a probability of at most α in all.

    The k-th smallest of m values is multiplied by m − k + 1, and is no smaller than the adjusted one before it.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
    [0.03, 0.06, 0.06, 0.02]

    Reference:
        Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6(2), 1979.
    """
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)))
    return adjusted.tolist()
