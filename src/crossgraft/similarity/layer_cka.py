"""Exact linear CKA of all pairs of layers in one pass over the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Float64

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity._features import Features, as_rows, not_finite
from crossgraft.similarity._sums import Product, Side, Sums
from crossgraft.similarity.streaming_cka import near_mean

Matrix = Float64[np.ndarray, "num_layers num_other_layers"]
LayerRows = Float[np.ndarray, "num_samples _"]
Values = Sequence[float] | Float64[np.ndarray, " _"]
Flags = Bool[np.ndarray, " _"]
NO_SPREAD = "all images have the same features"


@dataclass(frozen=True, eq=False)
class LayerSimilarity:
    """A value for each pair of layers; no entry is ever NaN.

    Attributes:
        matrix: One row per layer of the first network, one column per layer of the second.
        rows: Names of the layers of the first.
        columns: Names of the layers of the second.
        estimator: Name of the measure, with its variant.
        n: Number of images that it is of.
        seed: Random seed of what was drawn; None where nothing was.
        left_out_rows: Layers of the first network without a value, and why.
        left_out_columns: The same of the second.
        warnings: Warnings about the values, each a sentence.
    """

    matrix: Matrix
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    estimator: str
    n: int
    seed: int | None = None
    left_out_rows: Mapping[str, str] = field(default_factory=dict[str, str])
    left_out_columns: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: tuple[str, ...] = ()

    def to_frame(self) -> pd.DataFrame:
        """The matrix with its names."""
        return pd.DataFrame(self.matrix, index=list(self.rows), columns=list(self.columns))


def layer_rows(layers: Mapping[str, Features], others: Mapping[str, Features]) -> tuple[list[LayerRows], list[LayerRows]]:
    """Features of all layers as checked arrays of the same images.

    Raises:
        DataError: There are no layers, the numbers of rows differ, or a number is not finite; the message names the layer.
    """
    if not layers or not others:
        raise DataError("CKA of layers needs at least one layer of each network.")
    first = next(iter(layers.values()))
    sides: list[list[LayerRows]] = []
    for side in (layers, others):
        sides.append([])
        for name, features in side.items():
            rows, _ = as_rows(features, first, f"CKA of {name}")
            if not np.isfinite(rows).all():
                raise not_finite(name)
            sides[-1].append(rows)
    return sides[0], sides[1]


def from_products(
    between: Matrix,
    own: Sequence[Values],
    spread: Sequence[Flags],
    names: Sequence[Sequence[str]],
    *,
    estimator: str,
    n: int,
    warnings: Sequence[str] = (),
) -> LayerSimilarity:
    """HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)) of all pairs, without layers that have no spread.

    Args:
        between: HSIC of each pair.
        own: HSIC of each layer with itself.
        spread: Whether the features of each layer differ between images.
        names: Names of the layers.
        estimator: Name of the measure.
        n: Number of images.
        warnings: Warnings.
    """
    kept, left_out, roots = [], [], []
    for values, varies, labels in zip(own, spread, names, strict=True):
        good = np.array([bool(does) and value > 0 for value, does in zip(values, varies, strict=True)], dtype=bool)
        kept.append(good)
        left_out.append(
            {
                name: "the unbiased estimate of its spread is not positive; use more images" if does else NO_SPREAD
                for name, fine, does in zip(labels, good, varies, strict=True)
                if not fine
            }
        )
        roots.append(np.sqrt(np.asarray(values, dtype=np.float64)[good]))
    matrix = between[np.ix_(*kept)] / roots[0][:, None] / roots[1]
    return LayerSimilarity(
        np.minimum(matrix, 1.0),
        *(tuple(name for name, fine in zip(label, good, strict=True) if fine) for label, good in zip(names, kept, strict=True)),
        estimator=estimator,
        n=n,
        left_out_rows=left_out[0],
        left_out_columns=left_out[1],
        warnings=tuple(warnings),
    )


_ROWS_AT_ONCE = 512
_Columns = Float[np.ndarray, "num_samples num_columns"]


class LayerCka:
    """``linear_cka`` of every layer of one network with every layer of another, of all images at once.

    The features of all layers of a network stand side by side; one product gives the sums of all pairs. Products of 512 rows are
    formed in the number type of the features (float32 or float64) and summed in float64.

    Cost: n (D_x D_y + Σ d²) operations and 8 (D_x D_y + Σ d²) bytes, D the sum of the widths of all layers of a network; see
    ``needs_bytes``.

    Reference:
        Kornblith, Norouzi, Lee and Hinton, ICML 2019; the unbiased HSIC is eq. 5 of Song et al., JMLR 13 (2012) 1393.
    """

    def __init__(self) -> None:
        self.n = 0
        self._sides: list[_Layers] = []
        self._both = np.zeros((0, 0))

    @staticmethod
    def needs_bytes(widths: Sequence[int], others: Sequence[int]) -> int:
        """Memory of the sums for layers of these widths."""
        return 8 * (sum(widths) * sum(others) + sum(width**2 for width in (*widths, *others)))

    def update(self, layers: Mapping[str, Features], others: Mapping[str, Features]) -> LayerCka:
        """Add a batch of any size: features (b, d) of the same images by the name of their layer, of both networks.

        Raises:
            DataError: The numbers of rows differ, layers or widths are others than before, or a number is not finite; the
                message names the layer.
        """
        rows = layer_rows(layers, others)
        if len(rows[0][0]) == 0:
            return self
        if self.n == 0:
            self._sides = [_Layers(tuple(features), side) for features, side in zip((layers, others), rows, strict=True)]
            self._both = np.zeros([side.width + len(side.names) + 1 for side in self._sides])
        for start in range(0, len(rows[0][0]), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            block_x, block_y = (
                side.add(tuple(features), [layer[some] for layer in side_rows])
                for side, features, side_rows in zip(self._sides, (layers, others), rows, strict=True)
            )
            self._both += block_x.T @ block_y
            self.n += len(block_x)
        return self

    def compute(self, *, debiased: bool = False) -> LayerSimilarity:
        """CKA of all pairs so far; more may follow. A constant layer is left out with the reason.

        Raises:
            NotApplicable: There are fewer than four images.
        """
        if self.n < 4:
            raise NotApplicable(f"CKA of layers needs at least 4 images, found {self.n}.")
        first, second = ([side.of_layer(number) for number in range(len(side.names))] for side in self._sides)
        own = [[self._hsic(side, side, product, debiased) for side, product in side_pairs] for side_pairs in (first, second)]
        between = [
            [self._hsic(first_side, second_side, self._product(i, j), debiased) for j, (second_side, _) in enumerate(second)]
            for i, (first_side, _) in enumerate(first)
        ]
        return from_products(
            np.array(between),
            (own[0], own[1]),
            (self._sides[0].varies, self._sides[1].varies),
            (self._sides[0].names, self._sides[1].names),
            estimator="debiased linear cka" if debiased else "linear cka",
            n=self.n,
        )

    def _product(self, i: int, j: int) -> Product:
        """Sums of one pair of layers."""
        (columns_x, a), (columns_y, b) = self._sides[0].columns(i), self._sides[1].columns(j)
        both = self._both
        return Product(both[columns_x, columns_y], float(both[a, b]), both[columns_x, b], both[a, columns_y])

    def _hsic(self, side_x: Side, side_y: Side, product: Product, debiased: bool) -> float:
        return Sums(self.n, side_x, side_y, product, product, product).hsic(product, side_x, side_y, debiased=debiased)


class _Layers:
    """All layers of one network side by side, as columns: features, squared norms of each layer, and 1.

    Features are shifted by a point near the mean of the first batch and divided by a power of two, layer by layer.
    """

    def __init__(self, names: tuple[str, ...], rows: Sequence[LayerRows]) -> None:
        self.names = names
        ends = np.cumsum([0, *(layer.shape[1] for layer in rows)])
        self._columns_of = [slice(int(low), int(high)) for low, high in pairwise(ends)]
        self.width = int(ends[-1])
        self._shifts = [near_mean(layer, name) for name, layer in zip(names, rows, strict=True)]
        self._exponents = [int(np.frexp(np.abs(layer - shift).max())[1]) for layer, shift in zip(rows, self._shifts, strict=True)]
        self._first = [layer[0] for layer in rows]
        self.varies = np.zeros(len(names), dtype=bool)
        self._own = [np.zeros((layer.shape[1] + 2,) * 2) for layer in rows]

    def columns(self, number: int) -> tuple[slice, int]:
        """Where the features and the squared norms of a layer stand."""
        return self._columns_of[number], self.width + number

    def add(self, names: tuple[str, ...], rows: Sequence[LayerRows]) -> _Columns:
        """Add the sums of each layer with itself, and give the columns of a batch."""
        if (names, [layer.shape[1] for layer in rows]) != (self.names, [len(shift) for shift in self._shifts]):
            raise DataError("Layers, or their widths, are others than those of the batch before.")
        kind = np.float32 if all(layer.dtype == np.float32 for layer in rows) else np.float64
        block = np.ones((len(rows[0]), self.width + len(rows) + 1), dtype=kind)
        for number, layer in enumerate(rows):
            span, norms = self.columns(number)
            block[:, span] = np.ldexp(layer - self._shifts[number], -self._exponents[number])
            block[:, norms] = np.einsum("ij,ij->i", block[:, span], block[:, span])
            self.varies[number] |= bool((layer != self._first[number]).any())
            columns = block[:, [*range(span.start, span.stop), norms, -1]]
            self._own[number] += columns.T @ columns
        return block

    def of_layer(self, number: int) -> tuple[Side, Product]:
        """Sums of one layer, and of it with itself."""
        own = self._own[number]
        side = Side(np.zeros(len(own) - 2), 0, own[:-2, -1], float(own[-2, -1]))
        return side, Product(own[:-2, :-2], float(own[-2, -2]), own[:-2, -2], own[:-2, -2])
