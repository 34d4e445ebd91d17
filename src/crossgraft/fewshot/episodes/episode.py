"""One episode of a data set: a sampler says how many images, and this draws them."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossgraft.errors import DataError, located
from crossgraft.fewshot.episodes._sampler import Counts, Description, Episode, Random, Sampler
from crossgraft.fewshot.episodes.sides import draw_query_side, refuse_few_groups
from crossgraft.words.formatting import joined


def describe_episode(
    sizes: Counts,
    sampler: Sampler,
    random: Random,
    *,
    superclasses: np.ndarray | None = None,
    names: np.ndarray | None = None,
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
    class_ids = sampler.draw_classes(sizes, superclasses, random)
    drawn = sizes[class_ids]
    num_query = _num_query(sampler, drawn, class_ids if names is None else names[class_ids])
    num_support, support_size = sampler.num_support(drawn, drawn - num_query, random)
    return Description(class_ids, num_support, num_query, support_size)


def sample_episode(
    labels: np.ndarray,
    sampler: Sampler,
    random: Random,
    *,
    groups: np.ndarray | None = None,
    superclasses: Any = None,
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
    of_class = (
        None if superclasses is None else _superclasses_of(_sortable(superclasses, "Superclasses"), classes, names)
    )
    if groups is None:
        found = describe_episode(sizes, sampler, random, superclasses=of_class, names=names)
        picked = [random.permutation(np.flatnonzero(classes == number)) for number in found.class_ids]
        query = [rows[: found.num_query] for rows in picked]
        support = [rows[found.num_query :][:count] for rows, count in zip(picked, found.num_support, strict=True)]
    else:
        support, query = _grouped(classes, names, sizes, _sortable(groups, "Groups"), sampler, random, of_class)
    return Episode(random.permutation(np.concatenate(support)), random.permutation(np.concatenate(query)))


def _sortable(values: Any, what: str) -> np.ndarray:
    """The values as an array, if they can be told apart by sorting them.

    Raises:
        DataError: They cannot, as None and text.
    """
    found = np.asarray(values)
    if found.dtype == np.object_:
        try:
            np.unique(found)
        except TypeError as error:
            kinds = joined(sorted({type(value).__name__ for value in found.tolist()}))
            raise DataError(
                f"{what} do not sort, because of their types: {kinds}. Give values of one type; a row without a value needs "
                "a name of its own, or has to be left out."
            ) from error
    return found


def refuse_small_classes(
    labels: np.ndarray,
    sampler: Sampler,
    *,
    groups: np.ndarray | None = None,
    superclasses: np.ndarray | None = None,
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
    found = np.zeros(len(labels), dtype=bool)
    for number in range(len(names)):
        own = numbers == number
        sizes = np.unique(labels[own], return_counts=True)[1]
        try:
            sampler.draw_classes(sizes, None, np.random.default_rng(0))
        except DataError:
            continue
        found |= own
    return found


def _num_query(sampler: Sampler, sizes: Counts, names: np.ndarray) -> int:
    """Query images of each drawn class; if one has too few, its name comes first."""
    try:
        return sampler.num_query(sizes)
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
    class_ids = sampler.draw_classes(sizes, superclasses, random)
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
        raise DataError(
            f"There are {len(classes)} labels and superclasses of shape {superclasses.shape}. Give one per row."
        )
    pairs = np.unique(np.column_stack([classes, np.unique(superclasses, return_inverse=True)[1]]), axis=0)
    twice = np.flatnonzero(np.bincount(pairs[:, 0]) > 1)
    if len(twice):
        raise DataError(f"Class {names[twice[0]]} belongs to several superclasses. Give each class one.")
    return pairs[:, 1]
