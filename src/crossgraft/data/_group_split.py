"""Which part each image goes to, stratified by class; with groups, whole groups at a time."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64

from crossgraft.data.sampling import share_out
from crossgraft.seeding import generator
from crossgraft.types import ClassIndices, Groups

Shares = Float64[np.ndarray, " num_parts"]


def assign_images(targets: ClassIndices, shares: Shares, seed: int) -> ClassIndices:
    """Part of each row: every class is shuffled and cut at the shares, at least one image per part.

    Args:
        targets: Class of each row; every class has at least as many images as there are parts.
        shares: Share of each part, adding up to 1.
        seed: Random seed of the shuffles.
    """
    assigned = np.empty(len(targets), dtype=np.int64)
    for index in np.unique(targets):
        rows = generator(seed, "split", index).permutation(np.flatnonzero(targets == index))
        counts = share_out(shares, len(rows))
        assigned[rows] = np.repeat(np.arange(len(shares)), counts)
    return assigned


def assign_groups(targets: ClassIndices, groups: Groups, shares: Shares, seed: int) -> ClassIndices:
    """Part of each row, whole groups at a time.

    Greedy: the largest groups first, each to the part where it brings the class shares closest to what was asked; ties go
    by chance. A part that lacks a class comes first when only just enough groups with that class are left. Where groups of
    several classes leave a part without one all the same, groups are moved or exchanged until none lacks any, if a few
    steps reach that.

    Args:
        targets: Class of each row; images of every class are of at least as many groups as there are parts.
        groups: Group of each row.
        shares: Share of each part, adding up to 1.
        seed: Random seed for ties between groups of equal size.
    """
    names, group_of_row = np.unique(groups, return_inverse=True)
    counts = np.zeros((len(names), int(targets.max()) + 1))
    np.add.at(counts, (group_of_row.ravel(), targets), 1)
    class_sizes = counts.sum(axis=0)
    counts, class_sizes = counts[:, class_sizes > 0], class_sizes[class_sizes > 0]
    wanted = shares[:, np.newaxis] * class_sizes
    filled = np.zeros_like(wanted)
    groups_left = (counts > 0).sum(axis=0)
    part_of_group = np.empty(len(names), dtype=np.int64)
    shuffled = generator(seed, "split groups").permutation(len(names))
    for group in shuffled[np.argsort(-counts[shuffled].sum(axis=1), kind="stable")]:
        lacking = filled == 0
        urgent = lacking & (counts[group] > 0) & (groups_left <= lacking.sum(axis=0))
        before, after = filled - wanted, filled + counts[group] - wanted
        change = ((after**2 - before**2) / class_sizes**2).sum(axis=1)
        part = int(np.lexsort((change, -urgent.sum(axis=1)))[0])
        part_of_group[group] = part
        filled[part] += counts[group]
        groups_left = groups_left - (counts[group] > 0)
    if (filled == 0).any():
        part_of_group = _without_gaps(part_of_group, counts, wanted)
    return part_of_group[group_of_row.ravel()]


def _without_gaps(part_of_group: ClassIndices, counts: np.ndarray, wanted: np.ndarray) -> ClassIndices:
    """Move or exchange groups while that leaves fewer classes missing from a part; of such steps the one nearest the shares.

    Args:
        part_of_group: Part of each group.
        counts: Images of each group by class.
        wanted: Images that each part should have by class.
    """
    best, fewest = part_of_group, _gaps_and_distance(part_of_group, counts, wanted)
    while (now := fewest)[0]:
        start = best
        filled = _filled(start, counts, len(wanted))
        for part, index in np.argwhere(filled == 0):
            there = np.flatnonzero(start == part)
            for group in np.flatnonzero((counts[:, index] > 0) & (start != part)):
                for given_back in (group, *there):  # the group itself: nothing is given back
                    tried = start.copy()
                    tried[given_back], tried[group] = start[group], part
                    found = _gaps_and_distance(tried, counts, wanted)
                    if found < fewest:
                        best, fewest = tried, found
        if fewest[0] == now[0]:
            return start
    return best


def _filled(part_of_group: ClassIndices, counts: np.ndarray, num_parts: int) -> np.ndarray:
    """Images of each part by class."""
    filled = np.zeros((num_parts, counts.shape[1]))
    np.add.at(filled, part_of_group, counts)
    return filled


def _gaps_and_distance(part_of_group: ClassIndices, counts: np.ndarray, wanted: np.ndarray) -> tuple[int, float]:
    """How many classes are missing from a part, and how far the parts are from what they should have."""
    filled = _filled(part_of_group, counts, len(wanted))
    return int((filled == 0).sum()), float((((filled - wanted) / wanted.sum(axis=0)) ** 2).sum())
