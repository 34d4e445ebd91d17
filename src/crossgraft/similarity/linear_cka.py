"""Linear centred kernel alignment of two sets of features of the same images."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from crossgraft.errors import DataError, NotApplicable

Gram = Float[np.ndarray, "num_samples num_samples"]

_FEWEST_DEBIASED = 4


def linear_cka(
    x: Float[np.ndarray, "num_samples num_features_x"],
    y: Float[np.ndarray, "num_samples num_features_y"],
    *,
    debiased: bool = False,
) -> float:
    """CKA(X, Y) = HSIC(K, L) / √(HSIC(K, K) · HSIC(L, L)) with K = X Xᵀ and L = Y Yᵀ.

    The biased form is ‖Yᵀ X‖²_F / (‖Xᵀ X‖_F ‖Yᵀ Y‖_F) of centred features, in [0, 1]. It is not 0 for independent features:
    about d / (n + d) if they are isotropic, so values at different n can not be compared. The debiased form estimates HSIC
    without that bias (it may be a little below 0).

    Args:
        x: One row an image.
        y: The same images, in the same order.
        debiased: Use the unbiased estimate of HSIC.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than two images (four if debiased), or all images have the same features.

    Cost: O(n² d) and two n × n matrices.

    Reference:
        Kornblith, Norouzi, Lee and Hinton, Similarity of Neural Network Representations Revisited, ICML 2019; the unbiased
        HSIC is eq. 5 of Song, Smola, Gretton, Bedo and Borgwardt, JMLR 13 (2012) 1393.
    """
    if len(x) != len(y) or not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError(f"CKA compares finite features of the same images; found {x.shape} and {y.shape}.")
    fewest = _FEWEST_DEBIASED if debiased else 2
    if len(x) < fewest:
        raise NotApplicable(f"CKA needs at least {fewest} images, found {len(x)}.")
    measure = _unbiased_hsic if debiased else _biased_hsic
    first, second = (_gram(features) for features in (x, y))
    scales = measure(first, first), measure(second, second)
    if min(scales) <= 0:
        raise NotApplicable("All images have the same features, so there is nothing to align.")
    return measure(first, second) / float(np.sqrt(scales[0]) * np.sqrt(scales[1]))


def _gram(features: Float[np.ndarray, "num_samples num_features"]) -> Gram:
    """Inner products of centred features, scaled so that nothing overflows."""
    centred = features.astype(np.float64) - features.mean(axis=0, dtype=np.float64)
    largest = float(np.abs(centred).max())
    centred = centred / largest if largest > 0 else centred
    return centred @ centred.T


def _biased_hsic(first: Gram, second: Gram) -> float:
    return float((first * second).sum())


def _unbiased_hsic(first: Gram, second: Gram) -> float:
    n = len(first)
    k, m = (gram - np.diag(np.diag(gram)) for gram in (first, second))
    of_k, of_m = k.sum(axis=0), m.sum(axis=0)
    total = (k * m).sum() + of_k.sum() * of_m.sum() / ((n - 1) * (n - 2)) - 2 * float(of_k @ of_m) / (n - 2)
    return float(total) / (n * (n - 3))
