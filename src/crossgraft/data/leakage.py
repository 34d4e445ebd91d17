"""Whether images of one patient are in two parts of a split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.types import Groups
from crossgraft.words.formatting import counted


def count_shared_groups(groups: Groups | None, splits: Sequence[Sequence[np.ndarray]]) -> int:
    """Number of groups with rows in more than one part of one split.

    Args:
        groups: (n,) group of each row, or None.
        splits: Row numbers of the parts of each split; folds are several splits.
    """
    if groups is None:
        return 0
    shared: set[object] = set()
    for parts in splits:
        seen: set[object] = set()
        for rows in parts:
            of_part = set(groups[rows].tolist())
            shared |= seen & of_part
            seen |= of_part
    return len(shared)


def leakage_in_words(groups: Groups | None, column: str | None, splits: Sequence[Sequence[np.ndarray]]) -> str:
    """The same in a sentence. Arguments as of ``count_shared_groups``, and the column that groups come from."""
    if groups is None:
        return (
            "Patient leakage not checked: there is no group column, so images of one patient may be in two parts, and "
            "results may be too good."
        )
    found = f"{counted(len(np.unique(groups)), 'group')} of column {column}"
    if (shared := count_shared_groups(groups, splits)) > 0:
        return f"Leakage: of the {found}, {shared} have images in more than one part; results are too good."
    return f"No group is in two parts ({found})."
