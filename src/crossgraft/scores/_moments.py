"""Second moments of a feature matrix, in the smaller of its two forms, with rows that can be taken out again.

The matrix products run in the dtype of the features (a SYRK, and float32 is twice as fast); everything after them is
float64. What makes float32 accurate enough is the *shift*: products are formed of ``x − shift``, where the shift is a
point near the mean that the dtype holds exactly, so the mean (large in post-ReLU features) never eats the digits of the
spread. The centred and the raw matrix both follow exactly from the shifted one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Float64, Int
from scipy.linalg import get_blas_funcs

from crossgraft.scores._symmetric import Matrix
from crossgraft.types import Features

if TYPE_CHECKING:
    import torch

BLOCK_ROWS = 512
"""Rows that stay in the processor's cache while they are shifted, summed and multiplied."""
BLOCKS_A_SUM = 16
"""Blocks that are added up in the dtype of the features before the sum moves on to float64."""
BLOCK_COLUMNS = 4096
"""Columns of one product in the dual form."""
_TILE = 64
"""Rows and columns of a matrix that stay in the cache while they are transposed."""


RowIndices = Int[np.ndarray, " num_rows"]


def near_mean(features: Features) -> Float[np.ndarray, " num_features"]:
    """A point near the mean, in the dtype of the features: the mean of some 500 rows spread over all of them."""
    return features[:: max(1, len(features) // BLOCK_ROWS)].mean(axis=0)


def shifted_blocks(features: Features, shift: np.ndarray) -> Iterator[np.ndarray]:
    """``features − shift`` in row blocks; one buffer serves all blocks, so use each before asking for the next."""
    buffer = np.empty((min(BLOCK_ROWS, len(features)), features.shape[1]), dtype=features.dtype)
    for start in range(0, len(features), BLOCK_ROWS):
        block = features[start : start + BLOCK_ROWS]
        yield np.subtract(block, shift, out=buffer[: len(block)])


class ColumnMoments(NamedTuple):
    """Mean and standard deviation (1/n) of each column."""

    mean: Float64[np.ndarray, " num_features"]
    deviation: Float64[np.ndarray, " num_features"]

    @classmethod
    def of(cls, features: Features) -> ColumnMoments:
        """Sum over the rows of ``features``, around a point near the mean. Cost one pass."""
        shift = near_mean(features)
        total, squares = np.zeros(len(shift)), np.zeros(len(shift))
        for block in shifted_blocks(features, shift):
            total += block.sum(axis=0)
            squares += np.einsum("ij,ij->j", block, block)
        offset = total / len(features)
        variance = np.maximum(squares - offset * total, 0.0) / len(features)
        return cls(shift + offset, np.sqrt(variance))


@dataclass(frozen=True)
class PrimalMoments:
    """The d×d form, for n ≥ d: Σ (x−s)(x−s)ᵀ, Σ (x−s) and each ‖x−s‖² for a fixed shift s. Cost n·d²/2."""

    shift: np.ndarray
    product: Matrix
    total: Float64[np.ndarray, " num_features"]
    squared_norms: Float[np.ndarray, " num_samples"]

    @classmethod
    def of(cls, features: Features, shift: np.ndarray, device: torch.device | None = None) -> PrimalMoments:
        """Sum over the rows of ``features``, on ``device`` in float64."""
        if device is not None:
            from crossgraft.scores._on_device import primal_products

            return cls(shift, *primal_products(features, shift, device))
        num_samples, num_features = features.shape
        (syrk,) = get_blas_funcs(("syrk",), dtype=features.dtype)
        lower = np.zeros((num_features, num_features))
        total = np.zeros(num_features)
        squared_norms = np.empty(num_samples, dtype=features.dtype)
        recent = np.zeros((num_features, num_features), dtype=features.dtype, order="F")
        for index, shifted in enumerate(shifted_blocks(features, shift)):
            recent = syrk(1.0, shifted.T, beta=1.0, c=recent, overwrite_c=True)  # the upper triangle, by columns
            total += shifted.sum(axis=0)
            start = index * BLOCK_ROWS
            stop = start + len(shifted)
            squared_norms[start:stop] = np.einsum("ij,ij->i", shifted, shifted)
            if (index + 1) % BLOCKS_A_SUM == 0 or stop == num_samples:
                lower += recent.T
                recent.fill(0)
        _mirror(lower)
        return cls(shift, lower, total, squared_norms)

    def without(self, features: Features, rows: RowIndices) -> PrimalMoments:
        """Take ``rows`` of ``features`` out: their products are formed alone and subtracted. Cost ``len(rows)``·d²/2."""
        device = None if isinstance(self.product, np.ndarray) else self.product.device
        removed = PrimalMoments.of(features[rows], self.shift, device)
        return PrimalMoments(
            self.shift, self.product - removed.product, self.total - removed.total, np.delete(self.squared_norms, rows)
        )

    @property
    def num_samples(self) -> int:
        """N."""
        return len(self.squared_norms)

    def mean(self) -> Float64[np.ndarray, " num_features"]:
        """The mean of the rows."""
        return self.shift + self.total / self.num_samples

    def spread(self) -> float:
        """Σ ‖x−m‖², the trace of the scatter."""
        return float(self.product.trace()) - float(self.total @ self.total / self.num_samples)

    def centred_norms(self, features: Features) -> Float64[np.ndarray, " num_samples"]:
        """‖x−m‖² of every row; ``features`` are the rows that these moments are of. Cost n·d."""
        offset = self.total / self.num_samples  # m − s
        along = features @ offset.astype(features.dtype) - self.shift @ offset
        return self.squared_norms - 2 * along + offset @ offset

    def scatter(self) -> Matrix:
        """Σ (x−m)(x−m)ᵀ, m the mean; a matrix of its own."""
        product = self.product.copy() if isinstance(self.product, np.ndarray) else self.product.clone()
        return _plus_outer(product, -self.total, self.total / self.num_samples)

    def gram(self) -> Matrix:
        """Σ x xᵀ."""
        mean = self.mean()
        return _plus_outer(self.scatter(), self.num_samples * mean, mean)


def _mirror(lower: np.ndarray) -> None:
    """Copy the part below the diagonal to the part above, in place; whole rows at once would miss the cache."""
    for row in range(0, len(lower), _TILE):
        for column in range(0, row, _TILE):
            lower[column : column + _TILE, row : row + _TILE] = lower[row : row + _TILE, column : column + _TILE].T
        square = lower[row : row + _TILE, row : row + _TILE]
        square += np.tril(square, -1).T


def _plus_outer(matrix: Matrix, left: np.ndarray, right: np.ndarray) -> Matrix:
    """Add the outer product of two vectors to ``matrix``, in place and without a second matrix."""
    if not isinstance(matrix, np.ndarray):
        return matrix.addr_(matrix.new_tensor(left), matrix.new_tensor(right))
    for start in range(0, len(matrix), _TILE):
        rows = slice(start, start + _TILE)
        matrix[rows] += np.outer(left[rows], right)
    return matrix


@dataclass(frozen=True)
class DualMoments:
    """The n×n form, for n < d: (x_i−s)·(x_j−s) and (x_i−s)·s for a fixed shift s. Cost n²·d/2."""

    product: Matrix
    along_shift: Matrix
    shift_norm: float

    @classmethod
    def of(cls, features: Features, shift: np.ndarray, device: torch.device | None = None) -> DualMoments:
        """Sum over the columns of ``features``, on ``device`` in float64."""
        shift_norm = float(np.sum(np.square(shift, dtype=np.float64)))
        if device is not None:
            from crossgraft.scores._on_device import dual_products

            return cls(*dual_products(features, shift, device), shift_norm)
        num_samples, num_features = features.shape
        product = np.zeros((num_samples, num_samples))
        along_shift = np.zeros(num_samples)
        for start in range(0, num_features, BLOCK_COLUMNS):
            part = shift[start : start + BLOCK_COLUMNS]
            shifted = features[:, start : start + BLOCK_COLUMNS] - part
            product += shifted @ shifted.T
            along_shift += shifted @ part.astype(np.float64)
        return cls(product, along_shift, shift_norm)

    def without(self, kept: RowIndices) -> DualMoments:
        """Keep the rows and columns of ``kept``; nothing is formed again."""
        return DualMoments(self.product[kept[:, None], kept], self.along_shift[kept], self.shift_norm)

    def spread(self) -> float:
        """Σ ‖x−m‖², the trace of the scatter."""
        return float(self.product.trace() - self.product.sum() / len(self.product))

    def scatter(self) -> Matrix:
        """(x_i−m)·(x_j−m), m the mean."""
        row_mean = self.product.mean(axis=1)
        return self.product - row_mean[:, None] - row_mean + row_mean.mean()

    def gram(self) -> Matrix:
        """x_i·x_j."""
        return self.product + self.along_shift[:, None] + self.along_shift + self.shift_norm
