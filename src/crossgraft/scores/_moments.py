"""Second moments of a feature matrix, in the smaller of its two forms, with rows that can be taken out again.

The matrix products run in the dtype of the features (a SYRK, and float32 is twice as fast); everything after them is
float64. What makes float32 accurate enough is the *shift*: products are formed of ``x − shift``, where the shift is a
point near the mean that the dtype holds exactly, so the mean (large in post-ReLU features) never eats the digits of the
spread. The centred and the raw matrix both follow exactly from the shifted one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64, Int

from crossgraft.types import Features

BLOCK_ROWS = 4096
"""Rows of one float32 product; the sums over blocks are float64."""
BLOCK_COLUMNS = 4096
"""Columns of one float32 product in the dual form."""

RowIndices = Int[np.ndarray, " num_rows"]


def row_blocks(features: np.ndarray) -> Iterator[np.ndarray]:
    """Consecutive row blocks, so that no pass needs a second copy of the features."""
    for start in range(0, len(features), BLOCK_ROWS):
        yield features[start : start + BLOCK_ROWS]


def near_mean(features: Features) -> Float[np.ndarray, " num_features"]:
    """A point near the mean, in the dtype of the features."""
    return features.mean(axis=0)


@dataclass(frozen=True)
class PrimalMoments:
    """The d×d form, for n ≥ d: Σ (x−s)(x−s)ᵀ and Σ (x−s) for a fixed shift s. Cost n·d²/2."""

    num_samples: int
    shift: np.ndarray
    product: Float64[np.ndarray, "num_features num_features"]
    total: Float64[np.ndarray, " num_features"]

    @classmethod
    def of(cls, features: Features, shift: np.ndarray) -> PrimalMoments:
        """Sum over the rows of ``features``."""
        num_features = features.shape[1]
        product = np.zeros((num_features, num_features))
        total = np.zeros(num_features)
        for block in row_blocks(features):
            shifted = block - shift
            product += shifted.T @ shifted
            total += shifted.sum(axis=0)
        return cls(len(features), shift, product, total)

    def without(self, features: Features, rows: RowIndices) -> PrimalMoments:
        """Take ``rows`` of ``features`` out: their products are formed alone and subtracted. Cost ``len(rows)``·d²/2."""
        removed = PrimalMoments.of(features[rows], self.shift)
        return PrimalMoments(
            self.num_samples - removed.num_samples,
            self.shift,
            self.product - removed.product,
            self.total - removed.total,
        )

    def mean(self) -> Float64[np.ndarray, " num_features"]:
        """The mean of the rows."""
        return self.shift + self.total / self.num_samples

    def scatter(self) -> Float64[np.ndarray, "num_features num_features"]:
        """Σ (x−m)(x−m)ᵀ, m the mean."""
        offset = self.total / self.num_samples
        return self.product - np.outer(self.total, offset)

    def gram(self) -> Float64[np.ndarray, "num_features num_features"]:
        """Σ x xᵀ."""
        mean = self.mean()
        return self.scatter() + np.outer(self.num_samples * mean, mean)


@dataclass(frozen=True)
class DualMoments:
    """The n×n form, for n < d: (x_i−s)·(x_j−s) and (x_i−s)·s for a fixed shift s. Cost n²·d/2."""

    product: Float64[np.ndarray, "num_samples num_samples"]
    along_shift: Float64[np.ndarray, " num_samples"]
    shift_norm: float

    @classmethod
    def of(cls, features: Features, shift: np.ndarray) -> DualMoments:
        """Sum over the columns of ``features``."""
        num_samples, num_features = features.shape
        product = np.zeros((num_samples, num_samples))
        along_shift = np.zeros(num_samples)
        for start in range(0, num_features, BLOCK_COLUMNS):
            part = shift[start : start + BLOCK_COLUMNS]
            shifted = features[:, start : start + BLOCK_COLUMNS] - part
            product += shifted @ shifted.T
            along_shift += shifted @ part.astype(np.float64)
        return cls(product, along_shift, float(np.sum(np.square(shift, dtype=np.float64))))

    def without(self, kept: RowIndices) -> DualMoments:
        """Keep the rows and columns of ``kept``; nothing is formed again."""
        return DualMoments(self.product[np.ix_(kept, kept)], self.along_shift[kept], self.shift_norm)

    def scatter(self) -> Float64[np.ndarray, "num_samples num_samples"]:
        """(x_i−m)·(x_j−m), m the mean."""
        row_mean = self.product.mean(axis=1)
        return self.product - row_mean[:, None] - row_mean + row_mean.mean()

    def gram(self) -> Float64[np.ndarray, "num_samples num_samples"]:
        """x_i·x_j."""
        return self.product + self.along_shift[:, None] + self.along_shift + self.shift_norm
