"""Episodes of equal size: N classes, K support images of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crossgraft.errors import DataError, UsageError
from crossgraft.fewshot.episodes._sampler import Counts, Random, Sampler, draw_ways, refuse_fractions


@dataclass(frozen=True)
class NWayKShot(Sampler):
    """N classes without replacement, K support images and as many query images of each.

    Args:
        ways: N.
        shots: K.
        queries: Query images of each class; fewer where the smallest class of an episode, or its patients, leave no more.
        varying: Ways are uniform between N and ``max_ways``, as in the varying-way five-shot episodes of Meta-Dataset.
        max_ways: Most classes, with ``varying``.

    Source: Vinyals, Blundell, Lillicrap, Kavukcuoglu and Wierstra, Matching Networks for One Shot Learning, NeurIPS 2016.
    """

    name: ClassVar[str] = "n_way_k_shot"
    title: ClassVar[str] = "N-way K-shot"
    reference: ClassVar[str] = "Vinyals and others, Matching Networks for One Shot Learning, NeurIPS 2016"
    equal_shots: ClassVar[bool] = True

    ways: int = 5
    shots: int = 5
    queries: int = 10
    varying: bool = False
    max_ways: int = 50

    def __post_init__(self) -> None:
        refuse_fractions(self)
        if self.ways < 2 or min(self.shots, self.queries) < 1:
            raise UsageError("n_way_k_shot needs at least 2 ways, 1 shot and 1 query image per class.")
        if self.varying and self.max_ways < self.ways:
            raise UsageError(f"max_ways ({self.max_ways}) of n_way_k_shot is below its ways ({self.ways}).")

    @property
    def fewest_support(self) -> int:
        """K."""
        return self.shots

    def draw_classes(self, sizes: Counts, superclasses: np.ndarray | None, random: Random) -> np.ndarray:
        """N classes, or more with ``varying``."""
        most = self.max_ways if self.varying else self.ways
        return draw_ways(sizes, self.ways, most, superclasses, random, option=f"{self.name}:ways")

    def num_query(self, sizes: Counts) -> int:
        """Q = min(queries, min_c s_c − K)."""
        if sizes.min() <= self.shots:
            raise DataError(
                f"A class has {int(sizes.min())} images, too few for {self.shots} support images and one "
                "query. Lower shots=, or leave it out."
            )
        return min(self.queries, int(sizes.min()) - self.shots)

    def num_support(self, sizes: Counts, left: Counts, random: Random) -> tuple[Counts, int]:
        """K of each."""
        return np.full(len(sizes), self.shots), self.shots * len(sizes)
