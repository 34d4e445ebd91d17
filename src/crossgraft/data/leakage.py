"""Whether images of one patient are in two parts of a split."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crossgraft.data._look_alikes import look_alikes
from crossgraft.types import Groups
from crossgraft.words.formatting import count, counted


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


def is_leakage_known(groups: Groups | None, splits: Sequence[Sequence[np.ndarray]]) -> bool:
    """Whether there are groups, and no guess about their names decides whether one is in two parts of a split."""
    return groups is not None and _count_if_alike_are_one(groups, splits) == count_shared_groups(groups, splits)


def _count_if_alike_are_one(groups: Groups, splits: Sequence[Sequence[np.ndarray]]) -> int:
    """As ``count_shared_groups``, where ``03`` and ``003`` are one."""
    first_of = {
        name: each.names[0] for each in look_alikes(np.unique(groups).astype(str).tolist()) for name in each.names
    }
    if not first_of:
        return count_shared_groups(groups, splits)
    return count_shared_groups(np.asarray([first_of.get(name, name) for name in groups.astype(str).tolist()]), splits)


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
    if (guessed := _count_if_alike_are_one(groups, splits)) > 0:
        return (
            f"No group is in two parts under its own name ({found}), but {count(guessed)} would be if names that look alike are "
            "one. Correct the column, or patient leakage is not known."
        )
    return f"No group is in two parts ({found})."
