"""What a sampler draws: how many classes, and how many images of each; and who says which images these are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from crossgraft.errors import DataError, UsageError

Random = np.random.Generator | np.random.RandomState
Counts = Int[np.ndarray, " ways"]


@dataclass(frozen=True, eq=False)
class Description:
    """Sizes of an episode.

    Attributes:
        class_ids: (w,) numbers of the drawn classes.
        num_support: (w,) support images of each.
        num_query: Query images of each class.
        support_size: T, from which ``num_support`` follows: what it may add up to.
    """

    class_ids: np.ndarray
    num_support: np.ndarray
    num_query: int
    support_size: int


@dataclass(frozen=True, eq=False)
class Episode:
    """A few-shot task: row numbers of a data set.

    Attributes:
        support: (n,) rows that a head learns from.
        query: (m,) rows that it is tested on.
    """

    support: np.ndarray
    query: np.ndarray


class Sampler(ABC):
    """Draws sizes in two steps, because with patients the images that are left for the support set depend on who is query.

    Attributes:
        equal_shots: Whether all classes of a support set have as many images.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    reference: ClassVar[str]
    equal_shots: ClassVar[bool] = False

    @abstractmethod
    def draw_classes(self, sizes: Counts, superclasses: np.ndarray | None, random: Random) -> np.ndarray:
        """Numbers of the classes of an episode.

        Args:
            sizes: (C,) images of each class.
            superclasses: (C,) group of classes that each belongs to; None: one for all.
            random: Source of random numbers.

        Raises:
            DataError: There are too few classes.
        """

    @abstractmethod
    def num_query(self, sizes: Counts) -> int:
        """Query images of each class, for classes with so many images.

        Raises:
            DataError: A class has too few images.
        """

    @abstractmethod
    def num_support(self, sizes: Counts, left: Counts, random: Random) -> tuple[Counts, int]:
        """Support images of each class, and what they may add up to.

        Args:
            sizes: (w,) images of each drawn class.
            left: (w,) those of them that are not kept for queries.
            random: Source of random numbers.
        """

    @property
    @abstractmethod
    def fewest_support(self) -> int:
        """Support images that every class gets at least."""


def refuse_fractions(sampler: Any) -> None:
    """Raise where a number of a sampler, a dataclass, is not whole; the option is named."""
    for option in fields(sampler):
        value = getattr(sampler, option.name)
        if option.type == "int" and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise UsageError(f"{option.name} of {sampler.name} must be a whole number, got {value!r}.")


def draw_ways(
    sizes: Counts, fewest: int, most: int, superclasses: np.ndarray | None, random: Random, *, option: str
) -> np.ndarray:
    """Classes without replacement, their number uniform between two bounds; of one superclass where there are some.

    Args:
        sizes: (C,) images of each class.
        fewest: Fewest classes.
        most: Most classes.
        superclasses: (C,) group of classes that each belongs to; None: one for all.
        random: Source of random numbers.
        option: The option of the sampler that ``fewest`` is, such as ``meta_dataset:min_ways``.

    Raises:
        DataError: There are fewer classes than ``fewest``.
    """
    candidates = np.arange(len(sizes))
    if superclasses is not None:
        names, numbers, counts = np.unique(superclasses, return_inverse=True, return_counts=True)
        large = np.flatnonzero(counts >= fewest)
        if len(large) == 0:
            raise DataError(
                f"An episode needs {fewest} classes of one superclass; the largest, {names[counts.argmax()]}, has "
                f"{counts.max()}.{_fewer_ways(option, int(counts.max()))}"
            )
        candidates = np.flatnonzero(numbers == large[_below(random, len(large))])
    if len(candidates) < fewest:
        raise DataError(
            f"An episode needs {fewest} classes, and there are {len(candidates)}.{_fewer_ways(option, len(candidates))}"
        )
    num_ways = fewest + _below(random, min(most, len(candidates)) - fewest + 1)
    return candidates[random.choice(len(candidates), num_ways, replace=False)]


def _fewer_ways(option: str, num_classes: int) -> str:
    """What to type, where there are enough classes for any episode."""
    return f" Lower that number: --sampler {option}={num_classes}." if num_classes > 1 else ""


def _below(random: Random, bound: int) -> int:
    """A whole number from 0 to below ``bound``; one call of the source, as upstream makes."""
    return int(random.randint(bound) if isinstance(random, np.random.RandomState) else random.integers(bound))
