"""Linear CKA of any number of images, seen once, batch by batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_blas_funcs

from crossgraft.errors import DataError
from crossgraft.similarity._features import Features, Rows, RowsX, RowsY, as_rows, not_finite, ratio, refuse_few
from crossgraft.similarity._sums import Product, Side, Sums, Vector, VectorX, VectorY

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
            waiting = block[self.num_waiting : self.num_waiting + count]
            for start in range(0, count, _SHIFTED_AT_ONCE):
                some = slice(start, min(start + _SHIFTED_AT_ONCE, count))
                shifted = waiting[some, :-_EXTRA]
                np.subtract(rows[some], shift, out=shifted)
                waiting[some, -2] = np.einsum("ij,ij->i", shifted, shifted)
            # squares of large numbers overflow; only then the numbers themselves are looked at
            if not np.isfinite(waiting[:, -2].sum()) and not np.isfinite(waiting[:, :-_EXTRA]).all():
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
    exponent = int(np.frexp(largest)[1])
    if side.squares == 0:
        return exponent if abs(exponent) > _USUAL else 0
    return exponent if exponent - side.exponent > _USUAL else side.exponent


class StreamingCka:
    """The same number as ``linear_cka`` of all images at once, in one pass and O(d²) memory.

    Features are shifted by a point near the mean of the first batch, so that a mean far from zero costs no digits, and gathered
    in blocks. Products of a block are formed in its number type (float32 or float64) and summed in float64: of float32 features
    the tests find the result within 3 · 10⁻⁷ of that of float64 ones.

    Streams of different images may be merged, in any order; with different shifts the sums of one are moved to the shift of the
    other by the binomial formulas, which is exact but for rounding. A stream can be pickled, and ``state_dict`` gives arrays that
    processes may exchange.

    Cost: n (d_x² + d_y² + 2 d_x d_y) operations in three matrix products; 8 (d_x² + d_y² + d_x d_y) bytes, the same again in the
    number type of the features, and two blocks of 512 rows.

    Reference:
        Kornblith, Norouzi, Lee and Hinton, ICML 2019; the unbiased HSIC is eq. 5 of Song et al., JMLR 13 (2012) 1393.

    >>> stream = StreamingCka()
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(5):
    ...     batch = rng.standard_normal((20, 3))
    ...     _ = stream.update(batch, batch @ [[0, 2, 0], [2, 0, 0], [0, 0, -2]])
    >>> stream.n, round(stream.compute(), 6)
    (100, 1.0)
    """

    def __init__(self) -> None:
        self._sums = Sums.empty(np.zeros(0), np.zeros(0))
        self._products: BlockProducts | None = None

    @property
    def n(self) -> int:
        """Images so far."""
        return self._sums.n + (0 if self._products is None else self._products.num_waiting)

    def update(self, x: Features, y: Features) -> StreamingCka:
        """Add a batch of any size.

        Args:
            x: (b, d_x) features, one row per image; an array, or a tensor on any device.
            y: (b, d_y) of the same images, in the same order.

        Raises:
            DataError: The numbers of rows differ, the width is another than before, or a number is not finite; of a batch of more
                than 512 images those before it may have been added.
        """
        rows_x, rows_y = as_rows(x, y)
        self._refuse(rows_x, rows_y)
        if len(rows_x) == 0:
            return self
        if self.n == 0:
            self._sums, self._products = Sums.empty(near_mean(rows_x, "x"), near_mean(rows_y, "y")), None
        products = self._products_for(rows_x, rows_y)
        start = 0
        while start < len(rows_x):
            with np.errstate(over="ignore", invalid="ignore"):  # looked for, and told
                taken = products.take(rows_x[start:], rows_y[start:])
            if taken < 0:
                raise not_finite("x" if taken == -1 else "y")
            if products.num_waiting == BLOCK_ROWS:
                products.multiply(self._sums)
            start += taken
        return self

    def merge(self, other: StreamingCka) -> StreamingCka:
        """Add the images that another stream has seen, which stays as it is.

        Raises:
            DataError: Its features have another width.
        """
        mine, theirs = self._flushed(), copy.deepcopy(other._flushed())
        if theirs.n == 0:
            return self
        if mine.n == 0:
            self._sums = theirs
            return self
        if (len(mine.x.shift), len(mine.y.shift)) != (len(theirs.x.shift), len(theirs.y.shift)):
            raise DataError(
                f"Streams of features of widths {len(mine.x.shift)} and {len(mine.y.shift)} cannot be merged with one of "
                f"{len(theirs.x.shift)} and {len(theirs.y.shift)}."
            )
        exponents = max(mine.x.exponent, theirs.x.exponent), max(mine.y.exponent, theirs.y.exponent)
        mine.scale_to(*exponents)
        theirs.scale_to(*exponents)
        theirs.move_to(mine.x.shift, mine.y.shift)
        mine.add(theirs)
        return self

    def compute(self, *, debiased: bool = False) -> float:
        """CKA of all images so far; more may follow.

        Args:
            debiased: Use the unbiased estimate of HSIC.

        Returns:
            At most 1; biased at least 0.

        Raises:
            NotApplicable: Fewer than two images (four if debiased), or all images have the same features; the message says on
                which side.
        """
        sums = self._flushed()
        refuse_few(self.n, debiased=debiased)
        of_x, of_y, both = (sums.hsic(*triple, debiased=debiased) for triple in sums.triples())
        return ratio(both, of_x, of_y)

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything as arrays, float64 but for whole numbers; O(d²)."""
        sums = self._flushed()
        state = {"n": np.array(sums.n)}
        for name in ("x", "y", "xx", "yy", "xy"):
            state |= {f"{name}.{key}": np.array(value) for key, value in vars(getattr(sums, name)).items()}
        return state

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> StreamingCka:
        """The stream that ``state_dict`` describes; tensors instead of arrays are fine.

        Raises:
            DataError: Something is missing.
        """
        stream = cls()
        try:
            x, y = (Side(**_fields(state, name, Side)) for name in ("x", "y"))
            xx, yy, xy = (Product(**_fields(state, name, Product)) for name in ("xx", "yy", "xy"))
            stream._sums = Sums(int(state["n"]), x, y, xx, yy, xy)
        except KeyError as error:
            raise DataError(f"This is not the state of a StreamingCka: {error.args[0]} is missing.") from error
        return stream

    def _refuse(self, x: RowsX, y: RowsY) -> None:
        """What cannot be added."""
        before = len(self._sums.x.shift), len(self._sums.y.shift)
        if self.n and (x.shape[1], y.shape[1]) != before:
            raise DataError(
                f"The features were {before[0]} and {before[1]} wide so far, and are {x.shape[1]} and {y.shape[1]} now."
            )

    def _products_for(self, x: RowsX, y: RowsY) -> BlockProducts:
        """In float32 as long as features and shifts fit into it."""
        if self._products is None or (self._products.dtype == np.float32 and (x.dtype, y.dtype) != (np.float32, np.float32)):
            sums = self._flushed()
            shifts = sums.x.shift, sums.y.shift
            is_single = x.dtype == y.dtype == np.float32 and all(_fits(shift) for shift in shifts)
            self._products = BlockProducts(np.dtype(np.float32 if is_single else np.float64), *shifts)
        return self._products

    def _flushed(self) -> Sums:
        """All sums, when what waits is multiplied."""
        if self._products is not None:
            if self._products.num_waiting:
                self._products.multiply(self._sums)
            self._products.settle(self._sums)
        return self._sums


def near_mean(rows: Rows, side: str) -> Vector:
    """The mean of some 500 rows, as their type can hold it; of a constant column its value, so that it vanishes exactly."""
    some = rows[:: max(1, len(rows) // 500)]
    if not np.isfinite(some).all():
        raise not_finite(side)
    mean = some.mean(axis=0, dtype=np.float64).astype(rows.dtype)
    return np.where(some.max(axis=0) == some.min(axis=0), some[0], mean).astype(np.float64)


def _fits(shift: Vector) -> bool:
    """Whether float32 holds it exactly."""
    return bool((shift.astype(np.float32) == shift).all())


def _fields(state: Mapping[str, Any], name: str, kind: type[Side] | type[Product]) -> dict[str, Any]:
    """Arguments of a side or product; what has no axis is a number again."""
    arrays = {field.name: np.asarray(state[f"{name}.{field.name}"]).copy() for field in fields(kind)}
    return {key: value if value.ndim else value.item() for key, value in arrays.items()}
