"""Prepared images by row number, for heads that train inside the backbone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32
from torch import Tensor

from crossgraft.data.transforms import prepare_batch
from crossgraft.types import Preprocessing


class EpisodeImages:
    """Row numbers → inputs of a backbone.

    What goes to another process are the pixels of ``rows``; what comes back from there has none.

    Args:
        read: Function from a row number to an image (height, width, channels).
        preprocessing: Preprocessing of the backbone.
        rows: Rows that another process may ask for.
    """

    def __init__(
        self, read: Callable[[int], np.ndarray], preprocessing: Preprocessing, rows: Sequence[int] | np.ndarray = ()
    ) -> None:
        self._read = read
        self._preprocessing = preprocessing
        self._rows = [int(row) for row in rows]

    def __call__(self, rows: Sequence[int] | np.ndarray) -> Float32[Tensor, "_ channels height width"]:
        """(k, channels, height, width) in the order of ``rows``."""
        return prepare_batch([self._read(int(row)) for row in rows], self._preprocessing)

    def of(self, rows: Sequence[int] | np.ndarray) -> EpisodeImages:
        """The same, of which only these rows go to another process."""
        return EpisodeImages(self._read, self._preprocessing, rows)

    def __getstate__(self) -> dict[str, Any]:
        """For ``pickle``."""
        return {"pixels": {row: self._read(row) for row in self._rows}, "preprocessing": self._preprocessing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["pixels"].__getitem__, state["preprocessing"])
