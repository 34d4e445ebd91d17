"""Which images of an episode's classes may be support, and which query: no patient is on both sides."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool
from scipy.optimize import Bounds, LinearConstraint, milp

from crossgraft.errors import DataError
from crossgraft.fewshot.episodes._sampler import Random

_ATTEMPTS = 20
_LONGEST_SECONDS = 20.0


class Sides(NamedTuple):
    """Where images may be.

    Attributes:
        is_query: (n,) whether an image is on the side of the queries.
        num_query: Images of each class that this side has at least.
    """

    is_query: Bool[np.ndarray, " images"]
    num_query: int


def draw_query_side(
    classes: np.ndarray,
    groups: np.ndarray,
    names: np.ndarray,
    *,
    num_query: int,
    fewest_support: int,
    random: Random,
) -> Sides:
    """Put whole groups on the side of the queries until every class has enough there, and leave enough on the other.

    Groups come in a drawn order, each goes where its classes lack most; where that does not come out, another order is drawn.
    Where none does, integer programming looks for a split, which takes longer, and for fewer queries where there is none.

    Args:
        classes: (n,) class of each image, from 0.
        groups: (n,) patient of each image.
        names: Names of the classes, for messages.
        num_query: Images of each class that the side of the queries should have; fewer where the patients leave no more.
        fewest_support: Images of each class that the other side needs.
        random: Source of random numbers.

    Raises:
        DataError: A class has too few groups, or there was no split to be found.
    """
    refuse_few_groups(classes, groups, names, fewest_support=fewest_support)
    numbers, per_group = _count(classes, groups, len(names))
    needs = np.array([fewest_support, min(num_query, *_most_queries_by_class(per_group, fewest_support))])
    missing = np.full(len(names), np.inf)
    for _ in range(_ATTEMPTS):
        sides = _deal(per_group, needs, random)
        lacking = np.stack([needs[side] - per_group[sides == side].sum(axis=0) for side in (0, 1)])
        now = np.clip(lacking, 0, None).sum(axis=0)
        if not now.any():
            return Sides(sides[numbers] == 1, int(needs[1]))
        missing = min(missing, now, key=np.sum)
    needs[1] = _most_queries(per_group, needs)
    sides = _solve(per_group, needs, random) if needs[1] else None
    if sides is not None:
        return Sides(sides[numbers] == 1, int(needs[1]))
    short = int(missing.argmax())
    images, patients = per_group[:, short].sum(), np.count_nonzero(per_group[:, short])
    raise DataError(
        f"No split of the patients was found that leaves {fewest_support} support and 1 query image of every class in an "
        f"episode; {names[short]} is short of patients ({images} images of {patients}). Lower the shots."
    )


def _count(classes: np.ndarray, groups: np.ndarray, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) number of the group of each image, and (groups, C) images of each class that a group has."""
    numbers = np.unique(groups, return_inverse=True)[1]
    per_group = np.zeros((numbers.max() + 1, num_classes), dtype=int)
    np.add.at(per_group, (numbers, classes), 1)
    return numbers, per_group


def _most_queries_by_class(per_group: np.ndarray, fewest_support: int) -> list[int]:
    """Most images of each class that some of its groups have together while the others keep enough; 0 where none can."""
    found: list[int] = []
    for counts in per_group.T:
        sums = 1  # bit s: some groups have s images together
        for count in counts[counts > 0].tolist():
            sums |= sums << count
        most = int(counts.sum()) - fewest_support
        found.append((sums & ((1 << most + 1) - 1)).bit_length() - 1 if most > 0 else 0)
    return found


def _most_queries(per_group: np.ndarray, needs: np.ndarray) -> int:
    """Most queries of every class at once, at most as many as wanted; 0 where integer programming finds no split."""
    num_groups, num_classes = per_group.shape
    beside = np.column_stack([per_group.T, -np.ones(num_classes)])  # images of the query side − queries, per class
    of_support = np.column_stack([per_group.T, np.zeros(num_classes)])
    enough = [LinearConstraint(beside, 0, np.inf), LinearConstraint(of_support, 0, per_group.sum(axis=0) - needs[0])]
    upper: Any = np.append(np.ones(num_groups), needs[1])
    found: Any = milp(
        [*np.zeros(num_groups), -1.0],
        integrality=1,
        bounds=Bounds(0, upper),
        constraints=enough,
        options={"time_limit": _LONGEST_SECONDS},
    )
    return 0 if found.x is None else round(float(found.x[-1]))


def _deal(per_group: np.ndarray, needs: np.ndarray, random: Random) -> np.ndarray:
    """0 (support) or 1 (query) for each group."""
    sides = np.zeros(len(per_group), dtype=int)
    have = np.zeros((2, per_group.shape[1]))
    for group in random.permutation(len(per_group)):
        counts = per_group[group]
        lacking = np.clip(1 - have / needs[:, None], 0, None)  # share of what a class still lacks on each side
        gain = (lacking * (counts > 0)).sum(axis=1)
        sides[group] = int(gain[1] > gain[0])
        have[sides[group]] += counts
    return sides


def _solve(per_group: np.ndarray, needs: np.ndarray, random: Random) -> np.ndarray | None:
    """0 (support) or 1 (query) for each group, as near to drawn wishes as the needs allow; None: not found."""
    wishes = random.permutation(len(per_group)) - (len(per_group) - 1) / 2
    enough = LinearConstraint(per_group.T, needs[1], per_group.sum(axis=0) - needs[0])
    found: Any = milp(
        wishes, integrality=1, bounds=Bounds(0, 1), constraints=enough, options={"time_limit": _LONGEST_SECONDS}
    )
    return None if found.x is None else np.rint(found.x).astype(int)


def refuse_few_groups(classes: np.ndarray, groups: np.ndarray, names: np.ndarray, *, fewest_support: int) -> None:
    """Raise for classes of one group, and for those whose groups leave no query; arguments as of ``draw_query_side``."""
    per_group = _count(classes, groups, len(names))[1]
    num_groups = np.count_nonzero(per_group, axis=0)
    poor = [f"{name} ({count})" for name, count in zip(names, num_groups, strict=True) if count < 2]
    if poor:
        raise DataError(
            f"Support and query must not share a patient, so that every class needs images of two; fewer have: "
            f"{', '.join(poor[:5])}. Leave these classes out, or draw episodes without groups."
        )
    most = _most_queries_by_class(per_group, fewest_support)
    poor = [
        f"{name} ({images} images of {patients})"
        for name, images, patients, queries in zip(names, per_group.sum(axis=0), num_groups, most, strict=True)
        if queries < 1
    ]
    if poor:
        raise DataError(
            f"Support and query must not share a patient, and {fewest_support} support images and one query of other "
            f"patients are too many for: {', '.join(poor[:5])} patients. Lower the shots, leave these classes out, or draw "
            "episodes without groups."
        )
