"""Episodes of Meta-Dataset: any number of ways, and of shots that differ between classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.episodes._sampler import Counts, Random, Sampler, draw_ways, refuse_fractions

_SPREAD = math.log(2.0)


@dataclass(frozen=True)
class MetaDataset(Sampler):
    """Ways uniform between two bounds; query images equal for all classes; support images about as uneven as the classes are.

    Args:
        min_ways: Fewest classes of an episode.
        max_ways: Most classes.
        max_query: Most query images of a class; at most half of the smallest class.
        max_support: Most support images of an episode.
        max_contribution: Images of a class that count towards the size of the support set, which may then get more of them.

    Source: Triantafillou, Zhu, Dumoulin and others, Meta-Dataset, ICLR 2020, section 3.2 and ``sampling.py`` of its code; drawn
    in its order, so that a ``numpy.random.RandomState`` gives its episodes.
    """

    name: ClassVar[str] = "meta_dataset"
    title: ClassVar[str] = "Meta-Dataset"
    reference: ClassVar[str] = "Triantafillou, Zhu, Dumoulin and others, Meta-Dataset, ICLR 2020, section 3.2"

    min_ways: int = 5
    max_ways: int = 50
    max_query: int = 10
    max_support: int = 500
    max_contribution: int = 100

    def __post_init__(self) -> None:
        refuse_fractions(self)
        if not 2 <= self.min_ways <= self.max_ways:
            raise UsageError(f"meta_dataset needs 2 ≤ min_ways ≤ max_ways, got {self.min_ways} and {self.max_ways}.")
        if min(self.max_query, self.max_contribution) < 1 or self.max_support < self.max_ways:
            raise UsageError("meta_dataset needs max_query and max_contribution of at least 1, and max_support ≥ max_ways.")

    @property
    def fewest_support(self) -> int:
        """One image."""
        return 1

    def draw_classes(self, sizes: Counts, superclasses: np.ndarray | None, random: Random) -> np.ndarray:
        """Step 1 and 2."""
        option = f"{self.name}:min_ways"
        return draw_ways(sizes, self.min_ways, self.max_ways, superclasses, random, option=option)

    def num_query(self, sizes: Counts) -> int:
        """Step 3: q = min(10, min_c ⌊s_c / 2⌋)."""
        if sizes.min() < 2:
            raise DataError("A class has fewer than 2 images, one for the support set and one query. Leave it out.")
        return min(self.max_query, int(sizes.min()) // 2)

    def num_support(self, sizes: Counts, left: Counts, random: Random) -> tuple[Counts, int]:
        """Step 4 to 6."""
        beta = random.uniform()
        size = int(np.floor(beta * np.minimum(self.max_contribution, left) + 1).sum())
        size = min(self.max_support, size)  # T
        shares = np.exp(random.uniform(-_SPREAD, _SPREAD, size=len(sizes))) * sizes  # s_c e^a
        shares /= shares.sum()  # R_c
        wanted = np.floor(shares * (size - len(sizes))).astype(int) + 1
        return np.minimum(wanted, left), size
