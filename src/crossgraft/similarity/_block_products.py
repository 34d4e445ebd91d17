"""Products of blocks of images, gathered from batches of any size, on their way into ``Sums``."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_blas_funcs

from crossgraft.similarity._features import Rows, RowsX, RowsY
from crossgraft.similarity._sums import Side, Sums, Vector, VectorX, VectorY

BLOCK_ROWS = 512
"""Images that are multiplied at once."""
_BLOCKS_A_SUM = 16
"""Blocks that are added up in their own number type before the sum moves on to float64."""
_SHIFTED_AT_ONCE = 64
"""Images that stay in the fastest cache between their shift and their norm."""
_USUAL = 20
"""Images whose norm is within 2^±20 of a power of two are not divided again: even their fourth powers are far from overflow."""
_SAFE = 1e-20, 1e30
"""Squared norms that float32 holds without loss."""
_EXTRA = 3  # columns beside the features: 1, their own squared norms, those of the other side

Matrix = Float[np.ndarray, "columns other_columns"]


class BlockProducts:
    """Shifts rows into a block and multiplies full ones.

    A block has the columns (features, 1, a, b) with a and b the squared norms of its rows on this side and the other, so that
    the three matrix products of CKA give sums and weighted sums as well, without further passes over the features.

    Args:
        dtype: Number type of blocks and products.
        shift_x: Shift subtracted from the first set of features.
        shift_y: Shift subtracted from the second set.
    """

    def __init__(self, dtype: np.dtype[Any], shift_x: VectorX, shift_y: VectorY) -> None:
        self.dtype = dtype
        self._shifts = [shift.astype(dtype) for shift in (shift_x, shift_y)]
        self._blocks = [np.empty((BLOCK_ROWS, len(shift) + _EXTRA), dtype) for shift in self._shifts]
        for block in self._blocks:
            block[:, -_EXTRA] = 1
        x, y = (block.shape[1] for block in self._blocks)
        self._recent = [np.zeros(shape, dtype, order="F") for shape in ((x, x), (y, y), (x, y))]
        self._num_recent = 0  # blocks in them
        self.num_waiting = 0

    def take(self, x: RowsX, y: RowsY) -> int:
        """Shift as many rows into the block as there is room for.

        Returns:
            How many; a number below zero, −1 or −2, if some of the first or second are not finite. They are not taken then.
        """
        count = min(len(x), BLOCK_ROWS - self.num_waiting)
        for number, (rows, shift, block) in enumerate(zip((x, y), self._shifts, self._blocks, strict=True)):
            place = block[self.num_waiting : self.num_waiting + count]
            for start in range(0, count, _SHIFTED_AT_ONCE):
                some = slice(start, min(start + _SHIFTED_AT_ONCE, count))
                shifted = place[some, :-_EXTRA]
                np.subtract(rows[some], shift, out=shifted)
                place[some, -2] = np.einsum("ij,ij->i", shifted, shifted)
            # squares of large numbers overflow; only then the numbers themselves are looked at
            if not np.isfinite(place[:, -2].sum()) and not np.isfinite(place[:, :-_EXTRA]).all():
                return -1 - number
        self.num_waiting += count
        return count

    def multiply(self, sums: Sums) -> None:
        """Multiply what waits, also a part of a block; ``sums`` get the exponents that it needs."""
        x, y = (block[: self.num_waiting] for block in self._blocks)
        exponents = _exponent(sums.x, x), _exponent(sums.y, y)
        if exponents != (sums.x.exponent, sums.y.exponent):
            self.settle(sums)
            sums.scale_to(*exponents)
        for block, exponent in ((x, exponents[0]), (y, exponents[1])):
            if exponent:
                features = block[:, :-_EXTRA]
                np.ldexp(features, -exponent, out=features)
                block[:, -2] = np.einsum("ij,ij->i", features, features)
        x[:, -1], y[:, -1] = y[:, -2], x[:, -2]
        gemm, syrk = get_blas_funcs(("gemm", "syrk"), dtype=self.dtype)  # not kept, because they cannot be pickled
        xx, yy, xy = self._recent
        # upper triangles; arrays of one block are F-ordered when they are transposed, so that nothing is copied
        syrk(1.0, x.T, beta=1.0, c=xx, overwrite_c=True)
        syrk(1.0, y.T, beta=1.0, c=yy, overwrite_c=True)
        gemm(1.0, x.T, y.T, beta=1.0, c=xy, trans_b=True, overwrite_c=True)
        _add_norms(sums, x[:, -2].astype(np.float64), y[:, -2].astype(np.float64))
        self.num_waiting = 0
        self._num_recent += 1
        if self._num_recent == _BLOCKS_A_SUM:
            self.settle(sums)

    def settle(self, sums: Sums) -> None:
        """Move all products on to ``sums``."""
        if self._num_recent == 0:
            return
        xx, yy, xy = self._recent
        for side, product, recent in ((sums.x, sums.xx, xx), (sums.y, sums.yy, yy)):
            _add_triangle(product.matrix, recent[:-_EXTRA, :-_EXTRA])
            side.total += recent[:-_EXTRA, -_EXTRA]
            product.first += recent[:-_EXTRA, -2]
            product.second = product.first.copy()
        sums.xy.matrix += xy[:-_EXTRA, :-_EXTRA]
        sums.xy.first += xx[:-_EXTRA, -1]
        sums.xy.second += yy[:-_EXTRA, -1]
        for recent in self._recent:
            recent.fill(0)
        self._num_recent = 0


def _add_norms(sums: Sums, a: Vector, b: Vector) -> None:
    """Sums of squared norms and of their products."""
    sums.n += len(a)
    sums.x.squares += float(a.sum())
    sums.y.squares += float(b.sum())
    for product, k, m in ((sums.xx, a, a), (sums.yy, b, b), (sums.xy, a, b)):
        product.norms += float(k @ m)


def _add_triangle(matrix: Matrix, upper: Matrix) -> None:
    """Add a symmetric matrix of which only the upper triangle is there, in tiles that stay in the cache."""
    tile = 128
    for start in range(0, len(matrix), tile):
        own, right = slice(start, start + tile), slice(start + tile, None)
        diagonal = np.triu(upper[own, own])
        matrix[own, own] += diagonal + np.triu(diagonal, 1).T
        matrix[own, right] += upper[own, right]
        matrix[right, own] = matrix[own, right].T


def _exponent(side: Side, block: Rows) -> int:
    """The power of two that the features of this block need; mostly the one there is."""
    squares, features = float(block[:, -2].max()), block[:, :-_EXTRA]
    is_safe = _SAFE[0] < squares < _SAFE[1]
    largest = float(np.sqrt(squares)) if is_safe else max(float(features.max()), -float(features.min()))
    if largest == 0:
        return side.exponent
    found = int(np.frexp(largest)[1])
    if side.squares == 0:
        return found if abs(found) > _USUAL else 0
    return found if found - side.exponent > _USUAL else side.exponent
