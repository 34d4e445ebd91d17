"""One episode of a data set: a sampler says how many images, and this draws them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool
from scipy.optimize import Bounds, LinearConstraint, milp

from crossgraft.errors import DataError, UsageError, located
from crossgraft.fewshot.episodes._sampler import Counts, Description, Episode, Random, Sampler
from crossgraft.words.formatting import joined

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
    classes: np.ndarray, groups: np.ndarray, names: np.ndarray, *, num_query: int, fewest_support: int, random: Random
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
    of_classes: list[int] = []
    for counts in per_group.T:
        sums = 1  # bit s: some groups have s images together
        for count in counts[counts > 0].tolist():
            sums |= sums << count
        most = int(counts.sum()) - fewest_support
        of_classes.append((sums & ((1 << most + 1) - 1)).bit_length() - 1 if most > 0 else 0)
    return of_classes


def _most_queries(per_group: np.ndarray, needs: np.ndarray) -> int:
    """Most queries of every class at once, at most as many as wanted; 0 where integer programming finds no split."""
    num_groups, num_classes = per_group.shape
    beside = np.column_stack([per_group.T, -np.ones(num_classes)])  # images of the query side − queries, per class
    of_support = np.column_stack([per_group.T, np.zeros(num_classes)])
    enough = [LinearConstraint(beside, 0, np.inf), LinearConstraint(of_support, 0, per_group.sum(axis=0) - needs[0])]
    upper: Any = np.append(np.ones(num_groups), needs[1])
    solution: Any = milp(
        [*np.zeros(num_groups), -1.0],
        integrality=1,
        bounds=Bounds(0, upper),
        constraints=enough,
        options={"time_limit": _LONGEST_SECONDS},
    )
    return 0 if solution.x is None else round(float(solution.x[-1]))


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
    solution: Any = milp(wishes, integrality=1, bounds=Bounds(0, 1), constraints=enough, options={"time_limit": _LONGEST_SECONDS})
    return None if solution.x is None else np.rint(solution.x).astype(int)


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


def describe_episode(
    sizes: Counts, sampler: Sampler, random: Random, *, superclasses: np.ndarray | None = None, names: np.ndarray | None = None
) -> Description:
    """Sizes of an episode, images apart: what Meta-Dataset's ``EpisodeDescriptionSampler`` draws.

    Args:
        sizes: (C,) images of each class.
        sampler: Rule for the sizes.
        random: Source of random numbers; a ``RandomState`` gives the episodes of Meta-Dataset's code.
        superclasses: (C,) group of classes that each belongs to; an episode then has classes of one.
        names: (C,) what classes are called in messages; their numbers by default.

    Raises:
        DataError: There are too few classes, or too few images of one.
    """
    class_ids = _classes_of_episode(sampler, sizes, superclasses, random)
    drawn = sizes[class_ids]
    num_query = _num_query(sampler, drawn, class_ids if names is None else names[class_ids])
    num_support, support_size = sampler.num_support(drawn, drawn - num_query, random)
    return Description(class_ids, num_support, num_query, support_size)


def sample_episode(
    labels: np.ndarray, sampler: Sampler, random: Random, *, groups: np.ndarray | None = None, superclasses: Any = None
) -> Episode:
    """Draw rows for the support set and the queries of one episode.

    Args:
        labels: (n,) class of each row.
        sampler: Rule for the sizes.
        random: Source of random numbers.
        groups: (n,) patient of each row: support and queries share none.
        superclasses: (n,) superclass of each row, equal for all rows of a class; an episode then has classes of one, as
            episodes of Omniglot have characters of one alphabet.

    Raises:
        DataError: There are too few classes, images or patients; the arrays do not belong together; or values do not sort.

    Example:
        >>> from crossgraft.fewshot import NWayKShot
        >>> labels = np.repeat(["a", "b", "c"], 6)
        >>> episode = sample_episode(labels, NWayKShot(ways=2, shots=2, queries=3), np.random.default_rng(0))
        >>> len(episode.support), len(episode.query), set(episode.support) & set(episode.query)
        (4, 6, set())
    """
    names, classes = np.unique(_sortable(labels, "Labels"), return_inverse=True)
    sizes = np.bincount(classes)
    of_class = None if superclasses is None else _superclasses_of(_sortable(superclasses, "Superclasses"), classes, names)
    if groups is None:
        episode = describe_episode(sizes, sampler, random, superclasses=of_class, names=names)
        picked = [random.permutation(np.flatnonzero(classes == number)) for number in episode.class_ids]
        query = [rows[: episode.num_query] for rows in picked]
        support = [rows[episode.num_query :][:count] for rows, count in zip(picked, episode.num_support, strict=True)]
    else:
        support, query = _grouped(classes, names, sizes, _sortable(groups, "Groups"), sampler, random, of_class)
    return Episode(random.permutation(np.concatenate(support)), random.permutation(np.concatenate(query)))


def _sortable(values: Any, what: str) -> np.ndarray:
    """The values as an array, if they can be told apart by sorting them.

    Raises:
        DataError: They cannot, as None and text.
    """
    array = np.asarray(values)
    if array.dtype == np.object_:
        try:
            np.unique(array)
        except TypeError as error:
            kinds = joined(sorted({type(value).__name__ for value in array.tolist()}))
            raise DataError(
                f"{what} do not sort, because of their types: {kinds}. Give values of one type; a row without a value needs "
                "a name of its own, or has to be left out."
            ) from error
    return array


def refuse_small_classes(
    labels: np.ndarray, sampler: Sampler, *, groups: np.ndarray | None = None, superclasses: np.ndarray | None = None
) -> None:
    """Raise for classes that no episode can have, which would otherwise be found when one is drawn.

    Args:
        labels: (n,) class of each row.
        sampler: Rule for the sizes.
        groups: (n,) patient of each row.
        superclasses: (n,) superclass of each row; classes of one that is too small for an episode are never drawn, and pass.

    Raises:
        DataError: The message names the classes, and how many images or groups they have.
    """
    if superclasses is not None:
        drawn = _may_be_drawn(labels, superclasses, sampler)
        if not drawn.any():
            return  # drawing an episode says so
        labels, groups = labels[drawn], None if groups is None else groups[drawn]
    names, classes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    small = [f"{name} ({n})" for name, n in zip(names, counts, strict=True) if not _is_large_enough(sampler, int(n))]
    if small:
        raise DataError(
            f"Too few images for an episode of {sampler.title} have: {joined(small)}. Leave these classes out, or ask for fewer "
            "shots."
        )
    if groups is not None:
        refuse_few_groups(classes, groups, names, fewest_support=sampler.fewest_support)


def _may_be_drawn(labels: np.ndarray, superclasses: np.ndarray, sampler: Sampler) -> np.ndarray:
    """(n,) whether the superclass of each row has enough classes."""
    names, numbers = np.unique(superclasses, return_inverse=True)
    drawable = np.zeros(len(labels), dtype=bool)
    for number in range(len(names)):
        own = numbers == number
        sizes = np.unique(labels[own], return_counts=True)[1]
        try:
            sampler.draw_classes(sizes, None, np.random.default_rng(0))
        except DataError:
            continue
        drawable |= own
    return drawable


def _classes_of_episode(sampler: Sampler, sizes: Counts, superclasses: np.ndarray | None, random: Random) -> np.ndarray:
    """What the sampler draws, if these are classes.

    Raises:
        UsageError: They are no numbers of classes, or one is drawn twice.
    """
    drawn = np.asarray(sampler.draw_classes(sizes, superclasses, random))
    is_number = drawn.ndim == 1 and drawn.dtype.kind in "iu" and bool(np.isin(drawn, np.arange(len(sizes))).all())
    if not is_number or len(np.unique(drawn)) < max(len(drawn), 2):
        raise UsageError(
            f"The sampler {sampler.name} drew {drawn.tolist()}, which are not two or more different classes of 0 to "
            f"{len(sizes) - 1}. Mend it, or choose another."
        )
    return drawn


def _num_query(sampler: Sampler, sizes: Counts, names: np.ndarray) -> int:
    """Query images of each drawn class; if one has too few, its name comes first."""
    try:
        number = sampler.num_query(sizes)
        if number < 1:
            raise UsageError(f"The sampler {sampler.name} asked for {number} queries of each class. Mend it, or choose another.")
        return number
    except DataError as error:
        raise located(error, f"Class {names[int(sizes.argmin())]}") from error


def _is_large_enough(sampler: Sampler, size: int) -> bool:
    try:
        return sampler.num_query(np.array([size])) > 0
    except DataError:
        return False


def _grouped(
    classes: np.ndarray,
    names: np.ndarray,
    sizes: np.ndarray,
    groups: np.ndarray,
    sampler: Sampler,
    random: Random,
    superclasses: np.ndarray | None,
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Support and query rows by class, where the patients of the queries are drawn first."""
    if groups.shape != classes.shape:
        raise DataError(f"There are {len(classes)} labels and groups of shape {groups.shape}. Give one per row.")
    class_ids = _classes_of_episode(sampler, sizes, superclasses, random)
    drawn = sizes[class_ids]
    rows = np.flatnonzero(np.isin(classes, class_ids))
    places = np.full(len(sizes), -1)
    places[class_ids] = np.arange(len(class_ids))
    own = places[classes[rows]]
    is_query, num_query = draw_query_side(
        own,
        groups[rows],
        names[class_ids],
        num_query=_num_query(sampler, drawn, names[class_ids]),
        fewest_support=sampler.fewest_support,
        random=random,
    )
    left = np.bincount(own[~is_query], minlength=len(class_ids))
    num_support, _ = sampler.num_support(drawn, left, random)
    support: list[np.ndarray] = []
    query: list[np.ndarray] = []
    for place, count in enumerate(num_support):
        support.append(random.permutation(rows[(own == place) & ~is_query])[:count])
        query.append(random.permutation(rows[(own == place) & is_query])[:num_query])
    return support, query


def _superclasses_of(superclasses: np.ndarray, classes: np.ndarray, names: np.ndarray) -> np.ndarray:
    """One per class.

    Raises:
        DataError: A class has several.
    """
    if superclasses.shape != classes.shape:
        raise DataError(f"There are {len(classes)} labels and superclasses of shape {superclasses.shape}. Give one per row.")
    pairs = np.unique(np.column_stack([classes, np.unique(superclasses, return_inverse=True)[1]]), axis=0)
    twice = np.flatnonzero(np.bincount(pairs[:, 0]) > 1)
    if len(twice):
        raise DataError(f"Class {names[twice[0]]} belongs to several superclasses. Give each class one.")
    return pairs[:, 1]
