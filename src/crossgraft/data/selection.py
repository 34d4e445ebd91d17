"""Which of the listed rows to use (a part of a split, then fewer images), before any image is decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossgraft.data.sampling import limit_rows, take_per_class
from crossgraft.data.sources import SourceRows
from crossgraft.data.splits import Part, Split, k_folds, make_split
from crossgraft.errors import UsageError
from crossgraft.types import Targets


@dataclass(frozen=True)
class RowSelection:
    """What the user asked for; at most one of ``split holdout folds`` and one of ``limit per_class``.

    Attributes:
        split: Saved split whose train rows are used.
        holdout: Share that a new split sets aside as test, in (0, 1).
        folds: Number of folds of a new split.
        fold: Number of the fold that is set aside, from 0.
        limit: Maximum number of images.
        per_class: This many images of each class.
        seed: Random seed.
    """

    split: Path | None = None
    holdout: float | None = None
    folds: int | None = None
    fold: int = 0
    limit: int | None = None
    per_class: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        self._refuse_both(split=self.split, holdout=self.holdout, folds=self.folds)
        self._refuse_both(limit=self.limit, per_class=self.per_class)
        if self.holdout is not None and not 0 < self.holdout < 1:
            raise UsageError(f"--holdout must lie between 0 and 1, not {self.holdout}.")
        if self.folds is not None and not 0 <= self.fold < self.folds:
            raise UsageError(f"--fold must lie between 0 and {self.folds - 1}, not {self.fold}.")
        if self.folds is None and self.fold:
            raise UsageError("--fold says which of several folds is set aside; give their number with --folds.")

    @staticmethod
    def _refuse_both(**flags: object) -> None:
        given = [f"--{name.replace('_', '-')}" for name, value in flags.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} choose the same thing in different ways. Give one of them.")

    def make_split(self, rows: SourceRows, targets: Targets, class_names: Sequence[str]) -> Split | None:
        """The split that was asked for; None when all rows are used.

        Raises:
            DataError: A saved split belongs to other rows, or the rows cannot be split as asked.
            UsageError: The data have an official split already.
        """
        split = self._make_split(rows, targets, class_names)
        return None if split is None else split.model_copy(update={"rows_fingerprint": rows.rows_fingerprint})

    def _make_split(self, rows: SourceRows, targets: Targets, class_names: Sequence[str]) -> Split | None:
        listing = rows.listing_fingerprint
        if self.split is not None:
            split = Split.load(self.split)
            split.refuse_other_rows(rows)
            return split
        if self.holdout is None and self.folds is None:
            return None
        if rows.splits is not None:
            raise UsageError(f"{rows.name} has a split of its own, which is kept. Leave out --holdout and --folds.")
        if self.folds is not None:
            folds = k_folds(
                targets,
                rows.groups,
                num_folds=self.folds,
                seed=self.seed,
                data_fingerprint=listing,
                class_names=class_names,
            )
            return folds[self.fold]
        fractions: dict[Part, float] = {"train": 1 - (self.holdout or 0), "test": self.holdout or 0}
        return make_split(
            targets,
            rows.groups,
            fractions=fractions,
            seed=self.seed,
            data_fingerprint=listing,
            class_names=class_names,
        )

    def fewer(self, targets: Targets, class_names: tuple[str, ...]) -> np.ndarray:
        """Row numbers, ascending, after ``limit`` or ``per_class``."""
        if self.per_class is not None:
            return take_per_class(targets, self.per_class, seed=self.seed, class_names=class_names)
        if self.limit is not None:
            return limit_rows(targets, self.limit, seed=self.seed)
        return np.arange(len(targets))

    def describe(self, used: str, num_rows: int) -> str:
        """``used`` and what was left of it, in words."""
        if self.per_class is not None:
            return f"{used}, {self.per_class} images of each class"
        if self.limit is not None and self.limit < num_rows:
            return f"{used}, {self.limit} of {num_rows} images"
        return used
