"""Row numbers by what they are for, and what can be said about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from crossgraft.data import Dataset, Split
from crossgraft.data.splits import PARTS, Part
from crossgraft.records import SplitRow
from crossgraft.words.formatting import counted

Rows = Int64[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Row numbers of one fold, or of the only split; the three never share a row.

    Attributes:
        train: Rows that the weights are fitted to.
        val: Rows that select epoch and grid point, and that temperature and thresholds are fitted to; may be empty.
        test: Held-out rows, which take no part in any decision.
        fold: Number of the fold, from 0; None without folds.
    """

    train: Rows
    val: Rows
    test: Rows
    fold: int | None = None

    def rows(self, part: Part) -> Rows:
        """Row numbers of one part, ascending."""
        return {"train": self.train, "val": self.val, "test": self.test}[part]

    @property
    def name(self) -> str:
        """For messages and folders: ``fold-1``, or nothing without folds."""
        return "" if self.fold is None else f"fold-{self.fold}"


@dataclass(frozen=True, eq=False)
class TuningRows:
    """An open data set and what each of its rows is for.

    Attributes:
        dataset: All rows; without folds its ``splits`` name the part of each.
        parts: One, or one per fold.
        origins: Part → where its rows come from, in words.
        num_folds: None without folds.
        ranked: Rows that were given as train; None where no split was given.
    """

    dataset: Dataset
    parts: tuple[FoldRows, ...]
    origins: dict[str, str]
    num_folds: int | None = None
    ranked: Rows | None = None

    @property
    def ranked_fingerprint(self) -> str:
        """Fingerprint of the rows that ``rank`` would open: those that were given as train, or all where no split was given."""
        return self.dataset.fingerprint if self.ranked is None else self.dataset.take(self.ranked).fingerprint

    @property
    def split_in_words(self) -> str:
        """Where each part comes from."""
        return "; ".join(f"{part}: {origin}" for part, origin in self.origins.items())

    @property
    def has_val(self) -> bool:
        """Whether there are rows that select the model."""
        return self.parts[0].val.size > 0

    @property
    def num_shared_groups(self) -> int:
        """Groups with images in more than one part of one fold."""
        groups = self.dataset.groups
        if groups is None:
            return 0
        shared: set[object] = set()
        for parts in self.parts:
            of_part = [set(groups[parts.rows(part)].tolist()) for part in PARTS]
            shared |= (of_part[0] & of_part[1]) | (of_part[0] & of_part[2]) | (of_part[1] & of_part[2])
        return len(shared)

    @property
    def leakage(self) -> str:
        """Whether images of one patient may be on both sides, in a sentence."""
        groups = self.dataset.groups
        if groups is None:
            return (
                "Patient leakage not checked: there is no group column, so images of one patient may be in two parts, and "
                "results may be too good."
            )
        found = f"{counted(len(np.unique(groups)), 'group')} of column {self.dataset.group_column}"
        if (shared := self.num_shared_groups) > 0:
            return f"Leakage: of the {found}, {shared} have images in more than one part; results are too good."
        return f"No group is in two parts ({found})."

    def split_rows(self) -> list[SplitRow]:
        """The parts as a report shows them."""
        if self.num_folds is not None:
            return [self._split_row(f"test of fold {p.fold}", p.test, self.origins["test"]) for p in self.parts]
        parts = self.parts[0]
        return [self._split_row(p, parts.rows(p), self.origins[p]) for p in PARTS if parts.rows(p).size]

    def split_record(self) -> Split | None:
        """The split, to be saved and used again; None with folds."""
        if self.num_folds is not None:
            return None
        parts = self.parts[0]
        return Split(
            data_fingerprint=self.dataset.listing_fingerprint,
            num_images=len(self.dataset),
            method=self.split_in_words,
            seed=None,
            train=tuple(parts.train.tolist()),
            val=tuple(parts.val.tolist()),
            test=tuple(parts.test.tolist()),
        )

    def _split_row(self, name: str, rows: Rows, origin: str) -> SplitRow:
        dataset = self.dataset
        return SplitRow(
            name=name,
            num_images=len(rows),
            num_groups=None if dataset.groups is None else len(np.unique(dataset.groups[rows])),
            class_counts=[int(dataset.members(index)[rows].sum()) for index in range(len(dataset.class_names))],
            origin=origin,
        )
