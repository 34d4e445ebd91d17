"""Which part each image with several labels goes to: label shares kept within a bound, whole groups at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups, LabelMatrix

# Share out images with several labels so that every label is cut at the wanted shares, up to a proven bound.
#
# Images (or groups) with the same number of marks on every label are interchangeable, so what is decided is how many units
# of each *pattern* go to each part. Cutting a pattern exactly at the share leaves a fraction of a unit; these fractions are
# rounded as in the proof of the Beck–Fiala theorem: while more patterns float than there are labels to watch, some
# combination of them can be moved without changing any watched label, until one of them becomes whole. A label is no longer
# watched once so little of it floats that rounding cannot move it farther than the bound.
#
# Reference:
#     Beck and Fiala, Integer-making theorems, Discrete Applied Mathematics 3(1), 1981.

Marks = Float64[np.ndarray, "num_patterns num_marks"]
"""What one unit of each pattern counts: images of each label, and images in all."""
Units = Int64[np.ndarray, " num_patterns"]
"""How many units there are of each pattern."""
Shared = Int64[np.ndarray, "num_patterns num_parts"]
"""How many units of each pattern are in each part."""

_WHOLE = 1e-9


def share_out_patterns(marks: Marks, units: Units, shares: Float64[np.ndarray, " num_parts"], rng: np.random.Generator) -> Shared:
    """Cut every mark at ``shares``, by halving the list of parts again and again.

    Args:
        marks: Counts, not negative.
        units: Positive.
        shares: Positive, adding up to 1.
        rng: Generator that decides between equally good roundings.

    Returns:
        In every part, every mark differs from its share by less than ``rounding_bound(marks, shares)``.
    """
    if len(shares) == 1:
        return units[:, np.newaxis]
    middle = _middle(shares)
    first = _round(marks, units, float(shares[:middle].sum() / shares.sum()), rng)
    halves = ((first, shares[:middle]), (units - first, shares[middle:]))
    return np.concatenate([share_out_patterns(marks, half, part, rng) for half, part in halves], axis=1)


def rounding_bound(marks: Marks, shares: Float64[np.ndarray, " num_parts"]) -> float:
    """How far a mark of a part can be from its share: t for two parts, below 2 t for three, below 2.27 t for equal ones.

    One cut moves each mark by less than t, the largest sum of marks of one unit. A part inherits the deviation of the list
    it was cut from in proportion to its share p of the list's share P, so it is off by less than t·Σ p/P over all lists on
    its way, the whole one left out. Of equal parts the last list has 1, the one before at least 2, then 3, 5, 9, …, and
    1 + 1/2 + 1/3 + 1/5 + 1/9 + … < 2.27.
    """
    return float(marks.sum(axis=1).max(initial=0.0)) * float(_inherited(shares).max())


def _inherited(shares: Float64[np.ndarray, " num_parts"]) -> Float64[np.ndarray, " num_parts"]:
    """Σ p/P for every part; 0 where nothing was cut."""
    if len(shares) == 1:
        return np.zeros(1)
    middle = _middle(shares)
    halves = (shares[:middle], shares[middle:])
    return np.concatenate([_inherited(half) + half / half.sum() for half in halves])


def _middle(shares: Float64[np.ndarray, " num_parts"]) -> int:
    """Where a list of parts is cut: as near to its middle as possible, by share."""
    before = np.cumsum(shares)[:-1]
    return int(np.argmin(np.abs(before - shares.sum() / 2))) + 1


def _round(marks: Marks, units: Units, share: float, rng: np.random.Generator) -> Units:
    """How many units of each pattern go to the first of two parts; every mark is off by less than the bound."""
    exact = units * share
    counts = np.floor(exact + _WHOLE).astype(np.int64)
    fractions = np.maximum(exact - counts, 0.0)
    floating = rng.permutation(np.flatnonzero(fractions > _WHOLE))
    if floating.size:
        counts[floating] += _round_fractions(marks[floating], fractions[floating], rng)
    return counts


def _round_fractions(marks: Marks, fractions: Float64[np.ndarray, " num_patterns"], rng: np.random.Generator) -> Units:
    """0 or 1 for every fraction in (0, 1), such that each Σ marks·value moves by less than the largest row sum."""
    bound = marks.sum(axis=1).max()
    values = fractions.copy()
    left = marks.sum(axis=0)  # of each mark, how much still floats
    waiting = list(range(len(values)))
    block: list[int] = []
    while waiting or block:
        watched = np.flatnonzero(left > bound)
        while waiting and len(block) <= len(watched):
            block.append(waiting.pop())
        members = np.asarray(block)
        direction = _unwatched_direction(marks[np.ix_(members, watched)], rng)
        values[members] += _longest_step(values[members], direction) * direction
        whole = (values[members] < _WHOLE) | (values[members] > 1 - _WHOLE)
        values[members[whole]] = np.round(values[members[whole]])
        left = left - marks[members[whole]].sum(axis=0)
        block = members[~whole].tolist()
    return values.astype(np.int64)


def _unwatched_direction(watched: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A combination of the block that changes no watched mark, in a random sense.

    More than ``bound`` of every watched mark floats, and one pattern floats at most ``bound`` in all, so more patterns
    float than marks are watched: the block has a pattern more than marks, and there is such a combination.
    """
    num_members, num_watched = watched.shape
    direction = np.ones(num_members) if num_watched == 0 else np.linalg.svd(watched.T)[2][-1]
    return direction * (1 if rng.random() < 0.5 else -1)


def _longest_step(values: np.ndarray, direction: np.ndarray) -> float:
    """How far to go until the first value is 0 or 1."""
    moving = np.abs(direction) > 1e-12
    room = np.where(direction > 0, 1 - values, values)[moving]
    return float((room / np.abs(direction[moving])).min())


# Improve a cut of images with several labels by moving and exchanging units, never leaving its bound.
#
# The rounding that comes before promises the same bound for all labels, which says little about a rare one. Here every label
# weighs by its rarity, and a part that lacks a label gets one where that is possible.

_MOST_STEPS = 400
_CANDIDATES = 30  # of the best moves, how many are looked at until one is allowed
_PARTNERS = 64  # patterns of the other part that an exchange is tried with
_IMPROVEMENT = 1e-9


class _Step(NamedTuple):
    """One unit of the pattern ``given`` goes to another part, perhaps for one of the pattern ``taken``."""

    given: int
    taken: int | None
    giver: int
    taker: int


class LabelBalance:
    """How far each mark of each part is from its share, kept up to date while units move.

    Args:
        marks: Counts of one unit of each pattern; the last column counts images.
        shared: Units of each pattern in each part; changed in place.
        wanted: Marks that each part should have, parts × marks.
        bound: No mark of a part may be this far from what is wanted.
        keep_sizes: Whether to exchange only units of equal size, so that no part changes its number of images.
    """

    def __init__(self, marks: Marks, shared: Shared, wanted: np.ndarray, *, bound: float, keep_sizes: bool) -> None:
        self.marks = marks
        self.shared = shared
        self.bound = bound
        self.keep_sizes = keep_sizes
        self.off = shared.T @ marks - wanted
        self.has_mark = (marks > 0).astype(np.int64)
        self.holders = shared.T @ self.has_mark
        self.num_parts = shared.shape[1]
        # A mark of fewer units than parts goes where its share is largest, which is usually the training rows.
        self.least_held = (self.holders.sum(axis=0) >= self.num_parts).astype(np.int64)
        # A mark of many images may be off by more of them than one of few.
        self.weights = 1 / np.maximum(wanted.sum(axis=0), 1)
        self.own_cost = np.square(marks) @ self.weights

    def give_every_part_every_label(self, rng: np.random.Generator) -> None:
        """Bring labels, the rarest first, into parts that lack them; where there are enough units and it is allowed."""
        units_with = self.holders.sum(axis=0)
        for label in np.argsort(units_with, kind="stable"):
            if units_with[label] < self.num_parts:
                continue
            for part in np.flatnonzero(self.holders[:, label] == 0):
                self._bring(int(label), int(part), rng)

    def improve(self, rng: np.random.Generator) -> None:
        """Take the step that helps most, until none helps."""
        for _ in range(_MOST_STEPS):
            if not (self._move_one() or self._exchange_two(rng)):
                return

    def move_to_size(self, part: int, other: int) -> None:
        """Move units of one image each between two parts until ``part`` has as many images as wanted."""
        while abs(surplus := self.off[part, -1]) > 0.5:
            giver, taker = (part, other) if surplus > 0 else (other, part)
            change = np.where(self.shared[:, giver] > 0, self._changes()[:, giver, taker], np.inf)
            self._apply(_Step(int(change.argmin()), None, giver, taker))

    def _changes(self) -> np.ndarray:
        """(patterns, parts, parts): how the weighted sum of squares changes when one unit goes from part to part."""
        along = self.marks @ (self.off * self.weights).T
        return 2 * (self.own_cost[:, None, None] - along[:, :, None] + along[:, None, :])

    def _move_one(self) -> bool:
        if self.keep_sizes:
            return False
        change = np.where(self.shared[:, :, None] > 0, self._changes(), np.inf)
        change[:, range(self.num_parts), range(self.num_parts)] = np.inf
        return self._take_first_allowed(change, lambda at: _Step(at[0], None, at[1], at[2]), -_IMPROVEMENT)

    def _exchange_two(self, rng: np.random.Generator) -> bool:
        """Exchange two units between the parts of some pair; the first pair for which that helps."""
        for giver in range(self.num_parts):
            for taker in range(giver + 1, self.num_parts):
                if self._exchange(giver, taker, np.flatnonzero(self.shared[:, giver]), rng, limit=-_IMPROVEMENT):
                    return True
        return False

    def _exchange(self, giver: int, taker: int, mine: np.ndarray, rng: np.random.Generator, *, limit: float) -> bool:
        """Give one unit of the patterns ``mine`` for one of another pattern, if the change is below ``limit``."""
        theirs = np.flatnonzero(self.shared[:, taker])
        theirs = rng.permutation(theirs)[:_PARTNERS]
        if not (mine.size and theirs.size):
            return False
        one_way = self._changes()
        both = 4 * (self.marks[mine] * self.weights) @ self.marks[theirs].T
        change = one_way[mine, giver, taker][:, None] + one_way[theirs, taker, giver] - both
        if self.keep_sizes:
            change[self.marks[mine, -1][:, None] != self.marks[theirs, -1]] = np.inf
        change[mine[:, None] == theirs] = np.inf
        return self._take_first_allowed(change, lambda at: _Step(int(mine[at[0]]), int(theirs[at[1]]), giver, taker), limit)

    def _bring(self, label: int, part: int, rng: np.random.Generator) -> bool:
        """Move, or exchange, one unit with this label into this part."""
        with_label = self.marks[:, label] > 0
        if not self.keep_sizes:
            change = np.where(with_label[:, None] & (self.shared > 0), self._changes()[:, :, part], np.inf)
            change[:, part] = np.inf
            if self._take_first_allowed(change, lambda at: _Step(at[0], None, at[1], part), np.inf):
                return True
        for giver in np.argsort(-self.holders[:, label], kind="stable"):
            mine = np.flatnonzero(with_label & (self.shared[:, giver] > 0))
            if giver != part and self._exchange(int(giver), part, mine, rng, limit=np.inf):
                return True
        return False

    def _take_first_allowed(self, change: np.ndarray, step_at: Callable[[Sequence[int]], _Step], limit: float) -> bool:
        """Take the step with the smallest change, below ``limit``, that is allowed; look at the best few only."""
        flat = change.ravel()
        best = np.argpartition(flat, min(_CANDIDATES, flat.size) - 1)[:_CANDIDATES]
        for candidate in best[np.argsort(flat[best], kind="stable")]:
            if not flat[candidate] < limit:
                return False
            step = step_at([int(i) for i in np.unravel_index(candidate, change.shape)])
            if self._is_allowed(step):
                self._apply(step)
                return True
        return False

    def _net(self, values: np.ndarray, step: _Step) -> np.ndarray:
        """What giver and taker gain by the step, (2, marks)."""
        gain = values[step.given] - (0 if step.taken is None else values[step.taken])
        return np.stack([-gain, gain])

    def _is_allowed(self, step: _Step) -> bool:
        """Whether the step stays within the bound and leaves no part without a label that all parts can have."""
        both = [step.giver, step.taker]
        off, after = np.abs(self.off[both]), np.abs(self.off[both] + self._net(self.marks, step))
        within = (after < self.bound) | (after <= off)  # what is too far off already may come nearer
        held = self.holders[both]
        still_held = held + self._net(self.has_mark, step) >= np.minimum(held, self.least_held)
        return bool(within.all() and still_held.all())

    def _apply(self, step: _Step) -> None:
        both = [step.giver, step.taker]
        for pattern, source, goal in ((step.given, *both), (step.taken, *both[::-1])):
            if pattern is not None:
                self.shared[pattern, source] -= 1
                self.shared[pattern, goal] += 1
        self.off[both] += self._net(self.marks, step)
        self.holders[both] += self._net(self.has_mark, step)


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
