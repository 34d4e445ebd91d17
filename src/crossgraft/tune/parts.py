"""Row numbers by what they are for, and what can be said about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from crossgraft.data import Dataset, Split
from crossgraft.data.leakage import count_shared_groups, is_leakage_known, leakage_in_words
from crossgraft.data.record import SplitRow
from crossgraft.data.splits import PARTS, Part
from crossgraft.edit.record import EditedImagesRecord
from crossgraft.words.formatting import joined

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
        edits: Edits of the images of ``dataset``; None: they are as they came.
        unedited: The same rows before them.
    """

    dataset: Dataset
    parts: tuple[FoldRows, ...]
    origins: dict[str, str]
    num_folds: int | None = None
    edits: EditedImagesRecord | None = None
    unedited: Dataset | None = None

    @property
    def as_they_came(self) -> Dataset:
        """The rows without edits: what is in two parts, and what was looked at, is told by these."""
        return self.dataset if self.unedited is None else self.unedited

    @property
    def ranked_fingerprint(self) -> str:
        """Fingerprint of the rows that ``rank`` opens where it is told of the same parts; with folds, of all rows."""
        if self.num_folds is not None:
            return self.dataset.fingerprint
        return self.dataset.take(self.dataset.splits == "train").fingerprint

    @property
    def split_in_words(self) -> str:
        """Where each part comes from."""
        parts_of: dict[str, list[str]] = {}
        for part, origin in self.origins.items():
            parts_of.setdefault(origin, []).append(part)
        return "; ".join(f"{joined(parts)}: {origin}" for origin, parts in parts_of.items())

    @property
    def has_val(self) -> bool:
        """Whether there are rows that select the model."""
        return self.parts[0].val.size > 0

    @property
    def num_shared_groups(self) -> int:
        """Groups with images in more than one part of one fold."""
        return count_shared_groups(self.dataset.groups, self._splits)

    @property
    def leakage(self) -> str:
        """Whether images of one patient may be on both sides, in a sentence."""
        return leakage_in_words(self.dataset.groups, self.dataset.group_column, self._splits)

    @property
    def is_leakage_known(self) -> bool:
        """Whether groups say it, and no guess about their names."""
        return is_leakage_known(self.dataset.groups, self._splits)

    @property
    def _splits(self) -> list[list[Rows]]:
        return [[parts.rows(part) for part in PARTS] for parts in self.parts]

    def split_rows(self) -> list[SplitRow]:
        """The parts as a report shows them."""
        if self.num_folds is not None:
            return [self._split_row(f"test of fold {p.fold}", p.test, self.origins["test"]) for p in self.parts]
        parts = self.parts[0]
        return [self._split_row(p, parts.rows(p), self.origins[p]) for p in PARTS if parts.rows(p).size]

    def split_record(self) -> Split | None:
        """The split of all listed rows, to be saved and used again; None with folds."""
        split = self.dataset.split
        return split if self.num_folds is None and isinstance(split, Split) else None

    def _split_row(self, name: str, rows: Rows, origin: str) -> SplitRow:
        dataset = self.dataset
        return SplitRow(
            name=name,
            num_images=len(rows),
            num_groups=None if dataset.groups is None else len(np.unique(dataset.groups[rows])),
            class_counts=[int(dataset.members(index)[rows].sum()) for index in range(len(dataset.class_names))],
            origin=origin,
        )
