"""The four cells of class and attribute: counted, divided by patient, and drawn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from crossgraft.data import make_split
from crossgraft.edit.injection import draw_carriers, num_edited
from crossgraft.errors import DataError
from crossgraft.seeding import derive_seed

Mask = Bool[np.ndarray, " num_images"]
RowNumbers = Int64[np.ndarray, " _"]
Cell = tuple[bool, bool]
P1, P0, N1, N0 = CELLS = ((True, True), (True, False), (False, True), (False, False))
"""Cells (class, attribute): positives and negatives with the attribute (1) and without (0)."""


@dataclass(frozen=True, eq=False)
class CellRows:
    """Images of one part by cell.

    Attributes:
        part: Where they are, for messages.
        cells: (n,) rows of each cell, of all rows.
        people: (n,) patient of each row.
        identities: (n,) identity of each row, which draws go by.
        in_words: The attribute.
        seed: Random seed.
    """

    part: str
    cells: Mapping[Cell, Mask]
    people: np.ndarray
    identities: Sequence[str]
    in_words: str
    seed: int

    def count(self, cell: Cell) -> int:
        """Number of images of a cell."""
        return int(self.cells[cell].sum())

    def among(self, rows: Mask, part: str) -> CellRows:
        """Only those of these rows."""
        cells = {cell: mask & rows for cell, mask in self.cells.items()}
        return CellRows(part, cells, self.people, self.identities, self.in_words, self.seed)

    def divide(self, test_share: float) -> tuple[CellRows, CellRows]:
        """A new split of whole patients, each cell at about the same shares."""
        for cell, mask in self.cells.items():
            patients = len(np.unique(self.people[mask]))
            if patients < 2:
                self._raise_few(cell, "of different patients for two parts", 2, patients)
        rows = np.flatnonzero(np.any([*self.cells.values()], axis=0))
        of_cell = np.argmax([self.cells[cell][rows] for cell in CELLS], axis=0)
        split = make_split(
            of_cell,
            self.people[rows],
            fractions={"train": 1 - test_share, "test": test_share},
            seed=derive_seed(self.seed, "patients of an attribute"),
            class_names=[cell_in_words(cell, self.in_words) for cell in CELLS],
        )
        chosen = np.zeros(len(self.people), dtype=bool)
        chosen[rows[split.rows("test")]] = True
        return self.divided_at(chosen)

    def divided_at(self, is_test: Mask) -> tuple[CellRows, CellRows]:
        """The two parts of a split."""
        usable = np.any([*self.cells.values()], axis=0)
        divided = np.intersect1d(self.people[usable & is_test], self.people[usable & ~is_test])
        if len(divided):
            raise DataError(
                f"{len(divided)} of {len(np.unique(self.people[usable]))} patients have images in development and in test. "
                "Give a split of whole patients."
            )
        return self.among(~is_test, "in development"), self.among(is_test, "in test")

    def size_of_dev(self, shares: Sequence[float], wanted: int | None) -> int:
        """Images of each class: what is wanted, or the most at which no share asks a cell for more than it has."""
        with_it, without, negatives = (self.count(cell) for cell in (P1, P0, N0))

        def needs(size: int) -> tuple[int, int]:
            carrying = [num_edited(size, share) for share in shares]
            return max(carrying), size - min(carrying)

        size = wanted
        if size is None:
            possible = range(min(with_it + without, negatives), 0, -1)
            fits = (each for each in possible if needs(each)[0] <= with_it and needs(each)[1] <= without)
            size = next(fits, 1)
        for cell, number in zip((P1, P0, N0), (*needs(size), size), strict=True):
            self._refuse_few(cell, number)
        return size

    def size_of_test(self, wanted: int | None) -> int:
        """Images of each cell: what is wanted, or the most that all of them have."""
        size = max(1, min(map(self.count, CELLS))) if wanted is None else wanted
        for cell in CELLS:
            self._refuse_few(cell, size)
        return size

    def draw(self, cell: Cell, number: int) -> RowNumbers:
        """The first images of a cell, in an order that depends on the seed and on nothing but the images."""
        share = number / self.count(cell) if number else 0.0
        return np.flatnonzero(draw_carriers(self.cells[cell], share, self.identities, seed=self.seed))

    def positives(self, number: int, carrying: int) -> RowNumbers:
        """So many positives, so many of which have the attribute."""
        return np.r_[self.draw(P1, carrying), self.draw(P0, number - carrying)]

    def _refuse_few(self, cell: Cell, wanted: int) -> None:
        if (available := self.count(cell)) < wanted:
            self._raise_few(cell, self.part, wanted, available)

    def _raise_few(self, cell: Cell, where: str, wanted: int, available: int) -> None:
        raise DataError(
            f"Too few {cell_in_words(cell, self.in_words)} {where}: {wanted} wanted, {available} available. "
            "Collect more, ask for fewer, or choose another value or cut of the attribute."
        )


def by_cell(truth: Mask, carries: Mask, usable: Mask) -> dict[Cell, Mask]:
    """(n,) the rows of each cell."""
    return {(own, has): usable & (truth == own) & (carries == has) for own, has in CELLS}


def cell_in_words(cell: Cell, in_words: str) -> str:
    """``positive images with sex F``."""
    return f"{'positive' if cell[0] else 'negative'} images {'with' if cell[1] else 'without'} {in_words}"
