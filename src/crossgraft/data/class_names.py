"""Labels as people write them, and the classes 0 … C−1 behind them, in the order people expect."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from crossgraft.types import ClassIndices, Labels

_DIGITS = re.compile(r"([0-9]+)")


def natural_key(text: str) -> tuple[list[tuple[int, int, str]], str]:
    """Sort key that counts: ``grade 2`` comes before ``grade 10``; case decides only between equals.

    >>> sorted(["10", "2", "b", "A"], key=natural_key)
    ['2', '10', 'A', 'b']
    """
    parts = [part for part in _DIGITS.split(text) if part]
    return [(0, int(part), "") if part[0] in "0123456789" else (1, 0, part.casefold()) for part in parts], text


def index_classes(labels: Labels, names: Sequence[str] | None = None) -> tuple[tuple[str, ...], ClassIndices]:
    """The class names (numbers in numeric, words in natural order) and each row's place among them.

    Args:
        labels: One label a row: whole numbers, words or booleans.
        names: Name of class number 0, 1, …, if the labels are such numbers.
    """
    values, inverse = np.unique(labels, return_inverse=True)
    if values.dtype.kind in "US":
        order = sorted(range(len(values)), key=lambda i: natural_key(str(values[i])))
    else:
        order = list(range(len(values)))
    place = np.empty(len(values), dtype=np.int64)
    place[order] = np.arange(len(values))
    shown = [str(values[i]) if names is None else names[int(values[i])] for i in order]
    return tuple(shown), place[inverse.ravel()]
