"""Row numbers by what they are for, and what can be said about them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int64, Shaped

from crossgraft.data import Dataset, Split
from crossgraft.data.domains import Domains
from crossgraft.data.record import SplitRow
from crossgraft.data.selection import count_shared_groups, is_leakage_known, leakage_in_words
from crossgraft.data.splits import PARTS, Part
from crossgraft.edit.record import EditedImagesRecord
from crossgraft.words.formatting import joined

Rows = Int64[np.ndarray, " _"]


@dataclass(frozen=True, eq=False)
class FoldRows:
    """Row numbers of one fold, or of the only split; the parts never share a row.

    Attributes:
        train: Rows that the weights are fitted to.
        val: Rows that select epoch and grid point, and that temperature and thresholds are fitted to; may be empty.
        test: Held-out rows, which take no part in any decision.
        fold: Number of the fold, from 0; None without folds.
        seen: Rows of the domains that are trained on, which are only measured; empty where no domain is left out.
        domain: The domain that is left out; None: none is.
        num_excluded: Rows in no part, because their group has others in the domain that is left out.
    """

    train: Rows
    val: Rows
    test: Rows
    fold: int | None = None
    seen: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    domain: str | None = None
    num_excluded: int = 0

    def rows(self, part: Part) -> Rows:
        """Row numbers of one part, ascending."""
        return {"train": self.train, "val": self.val, "test": self.test}[part]

    def of_rows(self, num_rows: int) -> Shaped[np.ndarray, " num_rows"]:
        """Name of the part that each row of the data is in; empty for one that is in none of the three."""
        names = np.full(num_rows, "", dtype="U5")
        for part in PARTS:
            names[self.rows(part)] = part
        return names

    @property
    def name(self) -> str:
        """For messages and folders: ``fold-1`` or ``without OSLO``; nothing where there is one split of all rows."""
        if self.domain is not None:
            return f"without {self.domain}"
        return "" if self.fold is None else f"fold-{self.fold}"

    @property
    def where(self) -> str:
        """Which part of several this is, after a noun in a sentence: `` of fold 1``, `` without OSLO``."""
        if self.domain is not None:
            return f" without {self.domain}"
        return "" if self.fold is None else f" of fold {self.fold}"


def drawn_by(dataset: Dataset) -> str:
    """What stays together where parts are drawn, in words."""
    return "drawn by image" if dataset.groups is None else f"drawn by {dataset.group_column}"


@dataclass(frozen=True)
class LeftOut:
    """What was asked to be left out.

    Attributes:
        column: Column that says where an image comes from.
        names: All domains.
        asked: The domain, or what stands for all of them.
        is_each: Whether every domain is left out in turn.
        is_oracle: Whether the model is picked on images of the domain that is left out.
    """

    column: str
    names: tuple[str, ...]
    asked: str
    is_each: bool
    is_oracle: bool


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
        domains: Where each row of ``dataset`` comes from; None: nobody said.
        left_out: The domains that are left out, one in each of ``parts``; None: none are.
    """

    dataset: Dataset
    parts: tuple[FoldRows, ...]
    origins: dict[str, str]
    num_folds: int | None = None
    edits: EditedImagesRecord | None = None
    unedited: Dataset | None = None
    domains: Domains | None = None
    left_out: LeftOut | None = None

    @property
    def has_several_models(self) -> bool:
        """Whether rows are tested by several models, none of which is that of all: folds, or every domain left out in turn."""
        return self.num_folds is not None or (self.left_out is not None and self.left_out.is_each)

    @property
    def as_they_came(self) -> Dataset:
        """The rows without edits: what is in two parts, and what was looked at, is told by these."""
        return self.dataset if self.unedited is None else self.unedited

    @property
    def ranked_fingerprint(self) -> str:
        """Fingerprint of the rows that ``rank`` opens where it is told of the same parts; of several models, of all rows."""
        if self.has_several_models:
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
        return [[*(parts.rows(part) for part in PARTS), parts.seen] for parts in self.parts]

    def split_rows(self) -> list[SplitRow]:
        """The parts as a report shows them."""
        if self.has_several_models:
            return [self._split_row(f"test{p.where}", p.test, self.origins["test"]) for p in self.parts]
        parts = self.parts[0]
        seen = [self._split_row("seen", parts.seen, self.origins["seen"])] if parts.seen.size else []
        return [*(self._split_row(p, parts.rows(p), self.origins[p]) for p in PARTS if parts.rows(p).size), *seen]

    def split_record(self) -> Split | None:
        """The split of all listed rows, to be saved and used again; None of several models."""
        split = self.dataset.split
        return split if not self.has_several_models and isinstance(split, Split) else None

    def _split_row(self, name: str, rows: Rows, origin: str) -> SplitRow:
        dataset = self.dataset
        return SplitRow(
            name=name,
            num_images=len(rows),
            num_groups=None if dataset.groups is None else len(np.unique(dataset.groups[rows])),
            class_counts=[int(dataset.members(index)[rows].sum()) for index in range(len(dataset.class_names))],
            origin=origin,
        )
