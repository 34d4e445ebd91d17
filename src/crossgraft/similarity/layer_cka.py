"""Exact linear CKA of all pairs of layers in one pass over the images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from crossgraft.errors import DataError, NotApplicable
from crossgraft.similarity._features import Features
from crossgraft.similarity._sums import Product, Side, Sums
from crossgraft.similarity.layers import LayerRows, LayerSimilarity, from_products, layer_rows
from crossgraft.similarity.streaming_cka import near_mean

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
            self._sides = [_Layers(tuple(given), side) for given, side in zip((layers, others), rows, strict=True)]
            self._both = np.zeros([side.width + len(side.names) + 1 for side in self._sides])
        for start in range(0, len(rows[0][0]), _ROWS_AT_ONCE):
            some = slice(start, start + _ROWS_AT_ONCE)
            one, other = (
                side.add(tuple(given), [layer[some] for layer in found])
                for side, given, found in zip(self._sides, (layers, others), rows, strict=True)
            )
            self._both += one.T @ other
            self.n += len(one)
        return self

    def compute(self, *, debiased: bool = False) -> LayerSimilarity:
        """CKA of all pairs so far; more may follow. A constant layer is left out with the reason.

        Raises:
            NotApplicable: There are fewer than four images.
        """
        if self.n < 4:
            raise NotApplicable(f"CKA of layers needs at least 4 images, found {self.n}.")
        first, second = ([side.of_layer(number) for number in range(len(side.names))] for side in self._sides)
        own = [[self._hsic(side, side, product, debiased) for side, product in each] for each in (first, second)]
        between = [
            [self._hsic(one, other, self._product(i, j), debiased) for j, (other, _) in enumerate(second)]
            for i, (one, _) in enumerate(first)
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
        (one, a), (other, b) = self._sides[0].columns(i), self._sides[1].columns(j)
        both = self._both
        return Product(both[one, other], float(both[a, b]), both[one, b], both[a, other])

    def _hsic(self, one: Side, other: Side, product: Product, debiased: bool) -> float:
        return Sums(self.n, one, other, product, product, product).hsic(product, one, other, debiased=debiased)


class _Layers:
    """All layers of one network side by side, as columns: features, squared norms of each layer, and 1.

    Features are shifted by a point near the mean of the first batch and divided by a power of two, layer by layer.
    """

    def __init__(self, names: tuple[str, ...], rows: Sequence[LayerRows]) -> None:
        self.names = names
        ends = np.cumsum([0, *(layer.shape[1] for layer in rows)])
        self._places = [slice(int(low), int(high)) for low, high in pairwise(ends)]
        self.width = int(ends[-1])
        self._shifts = [near_mean(layer, name) for name, layer in zip(names, rows, strict=True)]
        self._exponents = [
            int(np.frexp(np.abs(layer - shift).max())[1]) for layer, shift in zip(rows, self._shifts, strict=True)
        ]
        self._first = [layer[0] for layer in rows]
        self.varies = np.zeros(len(names), dtype=bool)
        self._own = [np.zeros((layer.shape[1] + 2,) * 2) for layer in rows]

    def columns(self, number: int) -> tuple[slice, int]:
        """Where the features and the squared norms of a layer stand."""
        return self._places[number], self.width + number

    def add(self, names: tuple[str, ...], rows: Sequence[LayerRows]) -> _Columns:
        """Add the sums of each layer with itself, and give the columns of a batch."""
        if (names, [layer.shape[1] for layer in rows]) != (self.names, [len(shift) for shift in self._shifts]):
            raise DataError("Layers, or their widths, are others than those of the batch before.")
        kind = np.float32 if all(layer.dtype == np.float32 for layer in rows) else np.float64
        found = np.ones((len(rows[0]), self.width + len(rows) + 1), dtype=kind)
        for number, layer in enumerate(rows):
            place, norms = self.columns(number)
            found[:, place] = np.ldexp(layer - self._shifts[number], -self._exponents[number])
            found[:, norms] = np.einsum("ij,ij->i", found[:, place], found[:, place])
            self.varies[number] |= bool((layer != self._first[number]).any())
            columns = found[:, [*range(place.start, place.stop), norms, -1]]
            self._own[number] += columns.T @ columns
        return found

    def of_layer(self, number: int) -> tuple[Side, Product]:
        """Sums of one layer, and of it with itself."""
        own = self._own[number]
        side = Side(np.zeros(len(own) - 2), 0, own[:-2, -1], float(own[-2, -1]))
        return side, Product(own[:-2, :-2], float(own[-2, -2]), own[:-2, -2], own[:-2, -2])
