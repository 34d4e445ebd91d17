"""Linear CKA of any number of images, seen once, batch by batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from crossgraft.errors import DataError
from crossgraft.similarity._block_products import BLOCK_ROWS, BlockProducts
from crossgraft.similarity._features import Features, Rows, RowsX, RowsY, as_rows, not_finite, ratio, refuse_few
from crossgraft.similarity._sums import Product, Side, Sums, Vector


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
        if self._products is None or (
            self._products.dtype == np.float32 and (x.dtype, y.dtype) != (np.float32, np.float32)
        ):
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
    found = {field.name: np.asarray(state[f"{name}.{field.name}"]).copy() for field in fields(kind)}
    return {key: value if value.ndim else value.item() for key, value in found.items()}
