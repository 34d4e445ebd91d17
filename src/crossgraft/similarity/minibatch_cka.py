"""CKA of all pairs of layers as a ratio of means over minibatches, for features too wide for exact sums."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.similarity._features import Features, Similarity
from crossgraft.similarity.layer_cka import LayerRows, LayerSimilarity, from_products, layer_rows

_FEWEST = 4


class MinibatchCka:
    """Mean HSIC₁ over minibatches of each pair of layers; CKA is the ratio of these means.

    Each batch gives an unbiased estimate, so batches of any size aim at debiased CKA of all images, but the ratio of means is not
    that number: use ``LayerCka`` where d² fits. Each Gram matrix is U-centred once (its diagonal left out and rows of sum 0), and
    one matrix product of all of them, as vectors, gives every pair.

    Args:
        weight: ``batches``: each batch counts the same, as in torch_cka. ``images``: as much as it has images.

    Cost: b² Σ d operations for a batch of b images, and 4 b² bytes a layer.

    Reference:
        Nguyen, Raghu and Kornblith, Do Wide and Deep Networks Learn the Same Things?, ICLR 2021, Section 3.1; HSIC₁ is eq. 5 of
        Song et al., JMLR 13 (2012) 1393; U-centred matrices are those of Székely and Rizzo, Ann. Stat. 42 (2014) 2382.
    """

    def __init__(self, *, weight: str = "batches") -> None:
        if weight not in ("batches", "images"):
            raise UsageError(f"Minibatches are weighted by 'batches' or 'images', got {weight!r}.")
        self._weight = weight
        self._names: tuple[tuple[str, ...], tuple[str, ...]] | None = None
        self.num_batches, self.n, self.num_left_out = 0, 0, 0

    def update(self, layers: Mapping[str, Features], others: Mapping[str, Features]) -> MinibatchCka:
        """Add a batch: features (b, d) of the same images by the name of their layer, of both networks.

        A batch of fewer than four images has no estimate and is left out; ``compute`` says so.

        Raises:
            DataError: The numbers of rows differ, the layers are others than before, or a number is not finite; the message names
                the layer.
        """
        rows = layer_rows(layers, others)
        names = tuple(layers), tuple(others)
        if self._names is None:
            self._names = names
            sizes = [len(side) for side in names]
            self._between, self._own = np.zeros(sizes), [np.zeros(size) for size in sizes]
            self._spread = [np.zeros(size, dtype=bool) for size in sizes]
        if names != self._names:
            raise DataError("The layers of this minibatch are others than those of the batch before.")
        size = len(rows[0][0])
        if size < _FEWEST:
            self.num_left_out += size
            return self
        first, second = (np.stack([_centred_gram(layer) for layer in side]) for side in rows)
        factor = (size if self._weight == "images" else 1) / (size * (size - 3))
        self._between += factor * (first @ second.T)
        for own, grams in zip(self._own, (first, second), strict=True):
            own += factor * np.einsum("ij,ij->i", grams, grams, dtype=np.float64)
        for spread, side in zip(self._spread, rows, strict=True):
            spread |= [bool((layer != layer[0]).any()) for layer in side]
        self.num_batches += 1
        self.n += size
        return self

    def compute(self) -> LayerSimilarity:
        """CKA of all pairs so far; more may follow. A constant layer is left out with the reason.

        Raises:
            NotApplicable: No batch had four images.
        """
        if self._names is None or self.num_batches == 0:
            raise NotApplicable(f"Minibatch CKA needs batches of at least {_FEWEST} images, and there was none.")
        left_out = f"The last {self.num_left_out} images are not used: a batch needs {_FEWEST}."
        return from_products(
            self._between,
            (self._own[0], self._own[1]),
            (self._spread[0], self._spread[1]),
            self._names,
            estimator=f"minibatch cka, {self.num_batches} batches",
            n=self.n,
            warnings=[left_out] if self.num_left_out else [],
        )


def minibatch_cka(x: Features, y: Features, *, batch_size: int = 256, weight: str = "batches") -> Similarity:
    """CKA of two sets of features as a ratio of means of HSIC₁ over consecutive minibatches.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        batch_size: Images per batch, at least 4. A shorter last batch counts, if it has 4.
        weight: As of ``MinibatchCka``.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than four images, or all images have the same features; the message says on which side.
        UsageError: ``batch_size`` is below 4.

    Cost and reference: those of ``MinibatchCka``.
    """
    if batch_size < _FEWEST:
        raise UsageError(f"A minibatch of CKA has at least {_FEWEST} images, got {batch_size}.")
    rows_x, rows_y = (side[0] for side in layer_rows({"x": x}, {"y": y}))
    means = MinibatchCka(weight=weight)
    for start in range(0, len(rows_x), batch_size):
        batch = slice(start, start + batch_size)
        means.update({"x": rows_x[batch]}, {"y": rows_y[batch]})
    layers = means.compute()
    for name, reason in {**layers.left_out_rows, **layers.left_out_columns}.items():
        raise NotApplicable(f"Minibatch CKA has nothing to compare in {name}: {reason}.")
    return Similarity(float(layers.matrix[0, 0]), estimator=layers.estimator, n=layers.n, warnings=layers.warnings)


def _centred_gram(rows: LayerRows) -> Float[np.ndarray, " num_pairs"]:
    """The U-centred Gram matrix as a vector: the product of two of them is n (n − 3) HSIC₁."""
    size = len(rows)
    shifted = rows - rows.mean(axis=0, dtype=np.float64).astype(rows.dtype)  # costs no digits where means are far from 0
    largest = float(np.abs(shifted).max())
    if largest > 1e8 or 0 < largest < 1e-8:  # float32 does not hold fourth powers of these
        shifted = shifted.astype(np.float64)
    gram = shifted @ shifted.T
    np.fill_diagonal(gram, 0)
    sums = gram.sum(axis=0, dtype=np.float64)
    share = ((sums - sums.sum() / (2 * (size - 1))) / (size - 2)).astype(gram.dtype)
    gram -= share
    gram -= share[:, None]
    np.fill_diagonal(gram, 0)
    return gram.ravel()
