"""The split that every command draws where the data have none: a function of rows, groups, shares and seed alone.

``rank`` reads its training rows, ``tune`` decides on its validation rows and measures on its test rows, so no command selects
with images that another one tests on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Int64

from crossgraft.data.splits import PARTS, Part, Split, make_split, split_of
from crossgraft.errors import DataError, UsageError
from crossgraft.options.data import VAL_SHARE
from crossgraft.seeding import derive_seed
from crossgraft.tasks import task_of
from crossgraft.types import Groups, Targets

TEST_SHARE = 0.2
"""Share of the images that is set aside as test where the data have no test rows; the rest are train and val."""

GIVEN = "given with the data"

RowNumbers = Int64[np.ndarray, " _"]
_NO_ROWS = np.zeros(0, dtype=np.int64)


def complete_split(
    targets: Targets,
    groups: Groups | None,
    given: np.ndarray | None,
    *,
    given_origins: Mapping[Part, str] | None = None,
    test_share: float = TEST_SHARE,
    val_share: float = VAL_SHARE,
    seed: int,
    data_fingerprint: str,
    group_column: str | None = None,
    class_names: Sequence[str] | None = None,
    name: str = "the data",
    elsewhere: Collection[str] = (),
) -> Split:
    """Keep the parts that are given, and draw a missing test part, then a missing val part, from the training rows.

    Whole groups stay together, and classes keep their shares. A class with images of one group only stays in train.

    Args:
        targets: (n,) class of each row, or (n, L) of 0 and 1.
        groups: (n,) patient (or the like) of each row.
        given: (n,) part of each row; None: all rows are training rows.
        given_origins: Where the given parts come from, in words.
        test_share: Share of the training rows (where no parts are given, of all rows) that becomes test, in (0, 1).
        val_share: Share of the rest that becomes val, in [0, 1).
        seed: Random seed of both draws, which are independent: test does not depend on ``val_share``.
        data_fingerprint: Listing fingerprint of the rows.
        group_column: Name of the groups, for the description.
        class_names: Names of the classes, for messages.
        name: Name of the data, for messages.
        elsewhere: Parts that the data have beside these rows, which are not drawn.

    Raises:
        DataError: Parts are given, and none is called train.
        UsageError: A share of val rows is asked for, and there are some.
    """
    parts = np.full(len(targets), "train") if given is None else given
    train, val, test = (np.flatnonzero(parts == part) for part in PARTS)
    if train.size == 0:
        names = ", ".join(sorted({str(part) for part in parts} - {""}))
        raise DataError(f"{name} has the splits {names} but no split train, so there is nothing to train on.")
    if val.size and val_share != VAL_SHARE:
        raise UsageError(
            f"--val-fraction {val_share:g} is for data without val rows, and {name} has {val.size}, which are kept. Leave "
            "--val-fraction out."
        )
    how = "drawn by image" if groups is None else f"drawn by {group_column or 'group'}"
    origins: dict[Part, str] = {"train": "all other rows"}
    if given is not None:
        origins = dict(given_origins or dict.fromkeys(PARTS, GIVEN))
    drawn, whole, outside = False, "all rows" if given is None else "the training rows", ""
    missing: list[tuple[Part, float, RowNumbers]] = [("test", test_share, test), ("val", val_share, val)]
    for part, share, present in missing:
        if present.size or part in elsewhere:
            continue
        origins[part] = f"{share:.0%} of {whole}{outside}, {how}" if share > 0 else "none"
        if share > 0:
            drawn, outside = True, " outside test"
            train, chosen = draw_part(targets, groups, train, share, seed=seed, purpose=part, class_names=class_names)
            val, test = (val, chosen) if part == "test" else (chosen, test)
    part_of_row = np.full(len(targets), "", dtype="U5")
    for part, rows in zip(PARTS, (train, val, test), strict=True):
        part_of_row[rows] = part
    ordered: dict[Part, str] = {part: origins[part] for part in PARTS}
    method = "; ".join(f"{part}: {origin}" for part, origin in ordered.items())
    if drawn:
        method += f"; stratified by {task_of(targets).noun}"
    return split_of(part_of_row, data_fingerprint, method, seed if drawn else None, origins=ordered)


def draw_part(
    targets: Targets,
    groups: Groups | None,
    rows: RowNumbers,
    share: float,
    *,
    seed: int,
    purpose: str,
    class_names: Sequence[str] | None = None,
) -> tuple[RowNumbers, RowNumbers]:
    """``rows`` without the drawn ones, and the drawn ones, both ascending.

    Rows of a class whose images are of one group (or are one image) are not drawn: the class could not be learned then.
    """
    free = rows[_divisible(targets[rows], None if groups is None else groups[rows])]
    if free.size == 0:
        return rows, _NO_ROWS
    split = make_split(
        targets[free],
        None if groups is None else groups[free],
        fractions={"train": 1 - share, "test": share},
        seed=derive_seed(seed, "rows of", purpose),
        class_names=class_names,
    )
    drawn = free[split.rows("test")]
    return np.setdiff1d(rows, drawn), drawn


def _divisible(targets: Targets, groups: Groups | None) -> np.ndarray:
    """(n,) whether a row may be drawn; with groups, one that stays keeps its whole group, which may make others rare."""
    units = np.arange(len(targets)) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
    if not task_of(targets).partitions:
        return np.full(len(targets), len(np.unique(units)) > 1)
    free = np.ones(len(targets), dtype=bool)
    while free.any():
        present = np.unique(targets[free])
        rare = [index for index in present if len(np.unique(units[free & (targets == index)])) < 2]
        if not rare:
            break
        free &= ~np.isin(units, units[free & np.isin(targets, rare)])
    return free
