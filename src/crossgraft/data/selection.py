"""Which of the listed rows to use (parts of a split, then fewer images), before any image is decoded.

The split that every command draws where the data have none is a function of rows, groups, shares and seed alone. ``rank`` reads
its training rows, ``tune`` decides on its validation rows and measures on its test rows, so no command selects with images that
another one tests on.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Int64

from crossgraft.data.class_names import look_alikes
from crossgraft.data.fingerprint import ListedRows
from crossgraft.data.sampling import (
    FewerRows,
    GivenShares,
    limit_rows,
    limit_rows_of_parts,
    read_shares,
    take_class_shares,
    take_pairs,
    take_per_class,
)
from crossgraft.data.splits import PARTS, Part, Split, k_folds, make_split, split_of
from crossgraft.errors import DataError, UnknownNameError, UsageError
from crossgraft.options._option import Options
from crossgraft.options.data import VAL_SHARE
from crossgraft.seeding import derive_seed
from crossgraft.tasks import task_of
from crossgraft.types import Groups, Targets
from crossgraft.words.formatting import count, counted

TEST_SHARE = 0.2
"""Share of the images that is set aside as test where the data have no test rows; the rest are train and val."""

GIVEN = "given with the data"

OF_ROWS = ("split", "holdout", "folds", "fold", "limit", "per_class", "class_shares", "pair_by", "seed")
"""Options that choose rows, among those that open data."""

RowNumbers = Int64[np.ndarray, " _"]
NO_ROWS = np.zeros(0, dtype=np.int64)


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
        return rows, NO_ROWS
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
    first_of = {name: alike.names[0] for alike in look_alikes(np.unique(groups).astype(str).tolist()) for name in alike.names}
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
    tally = f"{counted(len(np.unique(groups)), 'group')} of column {column}"
    if (shared := count_shared_groups(groups, splits)) > 0:
        return f"Leakage: of the {tally}, {shared} have images in more than one part; results are too good."
    if (guessed := _count_if_alike_are_one(groups, splits)) > 0:
        return (
            f"No group is in two parts under its own name ({tally}), but {count(guessed)} would be if names that look alike are "
            "one. Correct the column, or patient leakage is not known."
        )
    return f"No group is in two parts ({tally})."


@dataclass(frozen=True)
class RowSelection:
    """What the user asked for; at most one of ``split holdout folds``, and of ``per_class`` and what else chooses images.

    Attributes:
        split: Saved split.
        holdout: Share of the images that become test in a new split, in [0, 1); 0: every image is a training image.
        folds: Number of folds of a new split.
        fold: Number of the fold that is set aside, from 0.
        limit: Maximum number of images.
        per_class: This many images of each class.
        class_shares: Shares of the classes, in each part; with ``limit`` of at most so many images.
        pair_by: Column whose groups give as many images of every class; with ``limit`` at most so many images.
        seed: Random seed.
        by_default: Whether missing parts are drawn where nothing else was said.
        val_share: Share of the training rows that become val where there are none.
    """

    split: Path | None = None
    holdout: float | None = None
    folds: int | None = None
    fold: int = 0
    limit: int | None = None
    per_class: int | None = None
    class_shares: GivenShares | None = None
    pair_by: str | None = None
    seed: int = 0
    by_default: bool = False
    val_share: float = VAL_SHARE

    @classmethod
    def of(cls, options: Options, *, by_default: bool = False, val_share: float = VAL_SHARE) -> RowSelection:
        """What these options say about rows; what they do not have is at its default.

        Raises:
            UsageError: They contradict each other.
        """
        said = {name: value for name in OF_ROWS if (value := getattr(options, name, None)) is not None}
        if "split" in said:
            said["split"] = Path(said["split"])
        return cls(**said, by_default=by_default, val_share=val_share)

    def __post_init__(self) -> None:
        self._refuse_both(split=self.split, holdout=self.holdout, folds=self.folds)
        self._refuse_both(limit=self.limit, per_class=self.per_class)
        self._refuse_both(per_class=self.per_class, class_shares=self.class_shares, pair_by=self.pair_by)
        if self.class_shares is not None:
            read_shares(self.class_shares)
        if self.holdout is not None and not 0 <= self.holdout < 1:
            raise UsageError(f"--holdout must be 0, or lie between 0 and 1, not {self.holdout}.")
        if self.folds is not None and not 0 <= self.fold < self.folds:
            raise UsageError(f"--fold must lie between 0 and {self.folds - 1}, not {self.fold}.")
        if self.folds is None and self.fold:
            raise UsageError("--fold says which of several folds is set aside; give their number with --folds.")

    @staticmethod
    def _refuse_both(**flags: object) -> None:
        chosen = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value is not None]
        if len(chosen) > 1:
            raise UsageError(f"{' and '.join(chosen)} choose the same thing in different ways. Give one of them.")

    @property
    def keeps_official(self) -> bool:
        """Whether nothing was said about parts, so that those that come with the data hold."""
        return self.split is None and self.holdout is None and self.folds is None

    def make_split(
        self, rows: ListedRows, targets: Targets, class_names: Sequence[str], *, elsewhere: Collection[str] = ()
    ) -> Split | None:
        """The split that was asked for; None when all rows are used.

        Args:
            rows: Rows to divide.
            targets: Class of each, or (n, L) of 0 and 1.
            class_names: Names of the classes.
            elsewhere: Parts that the data have beside these rows, which are not drawn.

        Raises:
            DataError: A saved split belongs to other rows, or the rows cannot be split as asked.
            UsageError: The data have an official split already.
        """
        split = self._make_split(rows, targets, class_names, elsewhere)
        return None if split is None else split.model_copy(update={"rows_fingerprint": rows.rows_fingerprint})

    def _make_split(
        self, rows: ListedRows, targets: Targets, class_names: Sequence[str], elsewhere: Collection[str]
    ) -> Split | None:
        listing = rows.listing_fingerprint
        if self.split is not None:
            split = Split.load(self.split)
            split.refuse_other_rows(rows)
            return self._complete(rows, targets, class_names, split, ()) if self.by_default else split
        if rows.splits is not None and (self.folds is not None or self.holdout is not None):
            raise UsageError(f"{rows.name} has a split of its own, which is kept. Leave out --holdout and --folds.")
        if self.folds is not None:
            folds = k_folds(
                targets, rows.groups, num_folds=self.folds, seed=self.seed, data_fingerprint=listing, class_names=class_names
            )
            return folds[self.fold]
        if self.holdout == 0 or (self.holdout is None and not self.by_default):
            return None
        return self._complete(rows, targets, class_names, None, elsewhere)

    def _complete(
        self, rows: ListedRows, targets: Targets, class_names: Sequence[str], saved: Split | None, elsewhere: Collection[str]
    ) -> Split:
        return complete_split(
            targets,
            rows.groups,
            rows.splits if saved is None else saved.part_names(),
            given_origins=None if saved is None else saved.origins or dict.fromkeys(PARTS, saved.method),
            test_share=self.holdout or TEST_SHARE,
            val_share=self.val_share,
            seed=self.seed,
            data_fingerprint=rows.listing_fingerprint,
            group_column=rows.group_column,
            class_names=class_names,
            name=rows.name,
            elsewhere=elsewhere,
        )

    def fewer(
        self, rows: ListedRows, chosen: np.ndarray, targets: Targets, class_names: tuple[str, ...], *, whole: bool
    ) -> FewerRows | None:
        """Which of the chosen rows are left after ``limit``, ``per_class``, ``class_shares`` and ``pair_by``, among these.

        Args:
            rows: All rows.
            chosen: Numbers of those that are used.
            targets: Class of each of these, or (n, L) of 0 and 1.
            class_names: Names of the classes.
            whole: Whether they are in several parts, which then keep their shares.

        Raises:
            DataError: A class, or a part, has too few images.
            UsageError: An option does not fit the images, or there is no such column.
        """
        parts = rows.splits[chosen] if whole and rows.splits is not None else None
        if self.per_class is not None:
            numbers = take_per_class(targets, self.per_class, seed=self.seed, class_names=class_names)
            return FewerRows(numbers, f"{self.per_class} images of each class")
        if self.class_shares is not None:
            asked = read_shares(self.class_shares)
            return take_class_shares(targets, asked, class_names=class_names, parts=parts, limit=self.limit, seed=self.seed)
        if self.pair_by is not None:
            values = column_of(rows, self.pair_by, flag="--pair-by")[chosen]
            return take_pairs(
                targets, values, self.pair_by, class_names=class_names, parts=parts, limit=self.limit, seed=self.seed
            )
        if self.limit is None:
            return None
        numbers = (
            limit_rows(targets, self.limit, seed=self.seed)
            if parts is None
            else limit_rows_of_parts(targets, parts, self.limit, seed=self.seed)
        )
        num_rows = len(rows.labels)
        return FewerRows(numbers, f"{self.limit} of {num_rows} images" if self.limit < num_rows else "")


def column_of(rows: ListedRows, column: str, *, flag: str) -> np.ndarray:
    """(n,) values of the groups of the data, or of another column, that an option names.

    Raises:
        UnknownNameError: There is no such column.
    """
    if rows.groups is not None and column == rows.group_column:
        return rows.groups
    if column in rows.attributes:
        return rows.attributes[column]
    known = [*([] if rows.group_column is None else [rows.group_column]), *rows.attributes]
    raise UnknownNameError(f"column of {flag}", column, known)
