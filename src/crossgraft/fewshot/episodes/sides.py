"""Which images of an episode's classes may be support, and which query: no patient is on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Bool
from scipy.optimize import Bounds, LinearConstraint, milp

from crossgraft.errors import DataError
from crossgraft.fewshot.episodes._sampler import Random

_ATTEMPTS = 20
_LONGEST_SECONDS = 20.0


def draw_query_side(
    classes: np.ndarray,
    groups: np.ndarray,
    names: np.ndarray,
    *,
    num_query: int,
    fewest_support: int,
    random: Random,
) -> Bool[np.ndarray, " images"]:
    """Put whole groups on the side of the queries until every class has enough there, and leave enough on the other.

    Groups come in a drawn order, each goes where its classes lack most; where that does not come out, another order is drawn.
    Where none does, integer programming looks for a split, which takes longer.

    Args:
        classes: (n,) class of each image, from 0.
        groups: (n,) patient of each image.
        names: Names of the classes, for messages.
        num_query: Images of each class that the side of the queries needs.
        fewest_support: Images of each class that the other side needs.
        random: Source of random numbers.

    Raises:
        DataError: A class has too few groups, or there was no split to be found.
    """
    refuse_few_groups(classes, groups, names)
    numbers = np.unique(groups, return_inverse=True)[1]
    per_group = np.zeros((numbers.max() + 1, len(names)), dtype=int)
    np.add.at(per_group, (numbers, classes), 1)
    needs = np.array([fewest_support, num_query])
    missing = np.full(len(names), np.inf)
    for _ in range(_ATTEMPTS):
        sides = _deal(per_group, needs, random)
        lacking = np.stack([needs[side] - per_group[sides == side].sum(axis=0) for side in (0, 1)])
        now = np.clip(lacking, 0, None).sum(axis=0)
        if not now.any():
            return sides[numbers] == 1
        missing = min(missing, now, key=np.sum)
    sides = _solve(per_group, needs, random)
    if sides is not None:
        return sides[numbers] == 1
    short = names[int(missing.argmax())]
    raise DataError(
        f"No split of the patients was found that leaves {fewest_support} support and {num_query} query images of every "
        f"class in an episode; {short} is short of patients. Lower the shots or the queries."
    )


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


def refuse_few_groups(classes: np.ndarray, groups: np.ndarray, names: np.ndarray) -> None:
    """Raise for classes of one group, which are named; arguments as of ``draw_query_side``."""
    pairs = np.unique(np.column_stack([classes, np.unique(groups, return_inverse=True)[1]]), axis=0)
    num_groups = np.bincount(pairs[:, 0], minlength=len(names))
    poor = [f"{name} ({count})" for name, count in zip(names, num_groups, strict=True) if count < 2]
    if poor:
        raise DataError(
            f"Support and query must not share a patient, so that every class needs images of two; fewer have: "
            f"{', '.join(poor[:5])}. Leave these classes out, or draw episodes without groups."
        )
