"""Improve a cut of images with several labels by moving and exchanging units, never leaving its bound.

The rounding that comes before promises the same bound for all labels, which says little about a rare one. Here every label
weighs by its rarity, and a part that lacks a label gets one where that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from crossgraft.data._label_rounding import Marks, Shared

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
        return self._take_first_allowed(
            change, lambda at: _Step(int(mine[at[0]]), int(theirs[at[1]]), giver, taker), limit
        )

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
