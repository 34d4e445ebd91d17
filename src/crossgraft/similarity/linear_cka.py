"""Linear centred kernel alignment of two sets of features of the same images."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from crossgraft.similarity._features import Features, Rows, RowsX, RowsY, as_rows, not_finite, ratio, refuse_few
from crossgraft.similarity.streaming_cka import StreamingCka

Gram = Float64[np.ndarray, "num_samples num_samples"]

_AT_ONCE = 1024
"""Rows or columns that are made float64 and centred at a time, so that no copy of the features is needed."""


class CkaPair(NamedTuple):
    """Both estimates of one pair of features.

    Attributes:
        biased: Biased estimate, in [0, 1].
        debiased: Debiased estimate, at most 1, about 0 for independent features.
    """

    biased: float
    debiased: float


def linear_cka(x: Features, y: Features, *, debiased: bool = False) -> float:
    """CKA(X, Y) = HSIC(K, L) / √(HSIC(K, K) · HSIC(L, L)) with K = X Xᵀ and L = Y Yᵀ.

    The biased form is ‖Yᵀ X‖²_F / (‖Xᵀ X‖_F ‖Yᵀ Y‖_F) of centred features, in [0, 1]. It is not 0 for independent features:
    about d / (n + d) if they are isotropic, so values at different n cannot be compared. The debiased form estimates HSIC
    without that bias (it may be a little below 0). Computed in float64 whatever the type of the features.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        debiased: Use the unbiased estimate of HSIC.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than two images (four if debiased), or all images have the same features; the message says on which
            side.

    Cost: n² (d_x + d_y) operations and two n × n matrices for n < max(d_x, d_y), else n (d_x² + d_y² + 2 d_x d_y) and matrices
    of d_x × d_x, d_y × d_y and d_x × d_y.

    Reference:
        Kornblith, Norouzi, Lee and Hinton, Similarity of Neural Network Representations Revisited, ICML 2019; the unbiased
        HSIC is eq. 5 of Song, Smola, Gretton, Bedo and Borgwardt, JMLR 13 (2012) 1393.
    """
    return _Form(x, y).compute(debiased=debiased)


def both_linear_cka(x: Features, y: Features) -> CkaPair:
    """``linear_cka`` biased and debiased, from one set of products; arguments and errors are the same, cost that of one."""
    form = _Form(x, y)
    return CkaPair(form.compute(debiased=False), form.compute(debiased=True))


class _Form:
    """The cheaper of the two forms."""

    def __init__(self, x: Features, y: Features) -> None:
        self._x, self._y = as_rows(x, y)
        self._grams: tuple[Gram, Gram] | None = None
        self._stream: StreamingCka | None = None

    def compute(self, *, debiased: bool) -> float:
        n = len(self._x)
        refuse_few(n, debiased=debiased)
        if n < max(self._x.shape[1], self._y.shape[1]):
            self._grams = self._grams or (_gram(self._x, "x"), _gram(self._y, "y"))
            return _of_grams(*self._grams, debiased=debiased)
        self._stream = self._stream or _streamed(self._x, self._y)
        return self._stream.compute(debiased=debiased)


def _streamed(x: RowsX, y: RowsY) -> StreamingCka:
    stream = StreamingCka()
    for start in range(0, len(x), _AT_ONCE):
        rows = slice(start, start + _AT_ONCE)
        stream.update(x[rows].astype(np.float64, copy=False), y[rows].astype(np.float64, copy=False))
    return stream


def _gram(features: Rows, side: str) -> Gram:
    """Inner products of centred features, scaled by a power of two so that nothing overflows."""
    low, high = features.min(axis=0).astype(np.float64), features.max(axis=0).astype(np.float64)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise not_finite(side)
    mean = np.where(low == high, low, features.mean(axis=0, dtype=np.float64))  # a constant column vanishes exactly
    exponent = int(np.frexp(max((high - mean).max(), (mean - low).max()))[1])
    gram = np.zeros((len(features), len(features)))
    for start in range(0, features.shape[1], _AT_ONCE):
        columns = slice(start, start + _AT_ONCE)
        centred = np.ldexp(features[:, columns] - mean[columns], -exponent)
        centred -= centred.mean(axis=0)  # what rounding of a large mean has left
        gram += centred @ centred.T
    return gram


def _of_grams(k: Gram, m: Gram, *, debiased: bool) -> float:
    hsic = _unbiased_hsic if debiased else _biased_hsic
    return ratio(hsic(k, m), hsic(k, k), hsic(m, m))


def _biased_hsic(k: Gram, m: Gram) -> float:
    """tr(K L), up to a factor."""
    return float(np.vdot(k, m))


def _unbiased_hsic(k: Gram, m: Gram) -> float:
    """HSIC₁ up to the factor n (n − 3), from centred matrices: the diagonals are left out of every sum.

    Rows of a centred matrix sum to 0, without the diagonal therefore to minus the diagonal.
    """
    n, of_k, of_m = len(k), np.diag(k), np.diag(m)
    off_diagonal = float(np.vdot(k, m)) - float(of_k @ of_m)
    return off_diagonal + of_k.sum() * of_m.sum() / ((n - 1) * (n - 2)) - 2 * float(of_k @ of_m) / (n - 2)
