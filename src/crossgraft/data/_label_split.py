"""Which part each image with several labels goes to: label shares kept within a bound, whole groups at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from crossgraft.data._label_balance import LabelBalance
from crossgraft.data._label_rounding import Marks, Shared, Units, rounding_bound, share_out_patterns
from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups, LabelMatrix


class LabelAssignment(NamedTuple):
    """Part of each row, and what was reached.

    Attributes:
        parts: Part of each row.
        bound: Every label count of every part, and its size, differs from its share by less than this; in images.
        largest_deviation: Largest deviation of a label count or a size from its share, in images.
        missing: (part, label) of labels that a part lacks.
    """

    parts: ClassIndices
    bound: float
    largest_deviation: float
    missing: list[tuple[int, int]]


def assign_label_sets(
    targets: LabelMatrix, groups: Groups | None, shares: Float64[np.ndarray, " num_parts"], seed: int
) -> LabelAssignment:
    """Share out the rows so that each part has its share of the images and of every label.

    Let t be the largest number of marks of one group (or image): its images plus, over all labels, its images with that
    label. The number of images of a part, and of its images with each label, differ from their shares by less than t with
    two parts, and by less than ``rounding_bound`` with more, which see for the proof. A label that occurs in at least as
    many groups (images) as there are parts is brought into each of them where that keeps to the bound.

    Args:
        targets: (n, L) of 0 and 1.
        groups: Stay together.
        shares: Share of each part, adding up to 1.
        seed: Random seed of the assignment.

    Cost: about parts × patterns × L³, patterns being the different rows of counts, plus sorting n rows.
    """
    units = _Units.of(targets, groups)
    bound = rounding_bound(units.marks, shares)
    rng = generator(seed, "split label sets")
    shared = share_out_patterns(units.marks, units.number, shares, rng)
    wanted = shares[:, np.newaxis] * (units.number @ units.marks)
    balance = LabelBalance(units.marks, shared, wanted, bound=bound, keep_sizes=False)
    balance.give_every_part_every_label(rng)
    balance.improve(rng)
    held = balance.holders[:, :-1]
    lacking = np.argwhere((held == 0) & (held.sum(axis=0) > 0))
    return LabelAssignment(
        parts=units.deal(shared, rng),
        bound=bound,
        largest_deviation=float(np.abs(balance.off).max()),
        missing=[(int(part), int(label)) for part, label in lacking],
    )


def choose_label_sets(targets: LabelMatrix, num_images: int, seed: int) -> np.ndarray:
    """Row numbers, ascending, of ``num_images`` images; labels keep their shares as nearly as that allows.

    Args:
        targets: (n, L) of 0 and 1.
        num_images: Number of images, at least 1 and below n.
        seed: Random seed of the choice.
    """
    units = _Units.of(targets, None)
    shares = np.array([num_images, len(targets) - num_images]) / len(targets)
    rng = generator(seed, "limit label sets")
    shared = share_out_patterns(units.marks, units.number, shares, rng)
    wanted = shares[:, np.newaxis] * (units.number @ units.marks)
    bound = rounding_bound(units.marks, shares)
    balance = LabelBalance(units.marks, shared, wanted, bound=bound, keep_sizes=True)
    balance.move_to_size(0, 1)
    balance.give_every_part_every_label(rng)
    balance.improve(rng)
    return np.flatnonzero(units.deal(shared, rng) == 0)


class _Units(NamedTuple):
    """What moves as a whole (groups, or single images), by pattern of marks.

    Attributes:
        marks: Counts of one unit of each pattern: its images with each label, and its images.
        number: Units of each pattern.
        pattern_of_unit: Pattern of each unit.
        unit_of_row: Unit of each row.
    """

    marks: Marks
    number: Units
    pattern_of_unit: Int64[np.ndarray, " num_units"]
    unit_of_row: Int64[np.ndarray, " num_samples"]

    @classmethod
    def of(cls, targets: LabelMatrix, groups: Groups | None) -> _Units:
        """Count the marks of every group, or of every image."""
        rows = np.column_stack([targets, np.ones(len(targets), dtype=np.int64)])
        unit_of_row = np.arange(len(rows)) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
        counts = np.zeros((int(unit_of_row.max()) + 1, rows.shape[1]), dtype=np.int64)
        np.add.at(counts, unit_of_row, rows)
        marks, pattern_of_unit, number = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
        return cls(marks.astype(np.float64), number.astype(np.int64), pattern_of_unit.ravel(), unit_of_row)

    def deal(self, shared: Shared, rng: np.random.Generator) -> ClassIndices:
        """Part of each row, when ``shared`` says how many units of each pattern go to each part."""
        order = rng.permutation(len(self.pattern_of_unit))
        order = order[np.argsort(self.pattern_of_unit[order], kind="stable")]
        parts = np.tile(np.arange(shared.shape[1]), len(shared))
        part_of_unit = np.empty(len(order), dtype=np.int64)
        part_of_unit[order] = np.repeat(parts, shared.ravel())
        return part_of_unit[self.unit_of_row]
