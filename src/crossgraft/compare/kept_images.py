"""Prepared images that stay in memory, so that measures of geometry look at them again without decoding them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from crossgraft.data import Dataset
from crossgraft.types import Preprocessing

MEMORY_LIMIT_BYTES = 2 << 30
"""Prepared images are kept if they take at most this much; otherwise those who need them decode them again."""


class KeptImages:
    """Images of one pass, as several networks take them.

    Args:
        images: All images.
        rows: Those of the pass, in its order.
        ways: Preprocessing of the networks that will look at them again.
    """

    def __init__(self, images: Dataset, rows: Int[np.ndarray, " num_rows"], ways: Iterable[Preprocessing]) -> None:
        self._images, self._rows = images, rows
        asked = frozenset(ways)
        size = sum(each.channels * each.height_pixels * each.width_pixels * 4 for each in asked)
        self.ways = asked if size * len(rows) <= MEMORY_LIMIT_BYTES else frozenset[Preprocessing]()
        self._parts: dict[Preprocessing, list[Tensor]] = {each: [] for each in self.ways}

    def take(self, inputs: Mapping[Preprocessing, Float[Tensor, "batch channels height width"]]) -> None:
        """Keep the next batch of the pass."""
        for way, parts in self._parts.items():
            parts.append(inputs[way])

    def of(self, way: Preprocessing) -> Float[Tensor, "num_rows channels height width"] | Dataset:
        """The images as a network takes them; the data themselves where they were not kept."""
        parts = self._parts.get(way)
        return torch.cat(parts) if parts else self._images.take(self._rows)
