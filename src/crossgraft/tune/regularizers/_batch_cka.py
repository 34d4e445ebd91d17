"""CKA of two sets of features of one batch, with a gradient."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

FEWEST_DEBIASED = 4
"""Images of a debiased CKA."""
# Of HSIC(K, K) / trace(K)²: what is smaller, or some roundings of its number type, says nothing. The unbiased one is 0
# where all images but one have the same features.
_SMALLEST_SCALE = 1e-12
# Of the norm of features: equal rows minus their mean are as large as the rounding of that mean.
_ROUNDING = 10.0


class BatchCKA(NamedTuple):
    """What ``batch_cka`` found.

    Attributes:
        value: The similarity; 0, without a gradient, where it is not defined.
        is_defined: False where all images have the same features, or where there are too few.
    """

    value: Float[Tensor, ""]
    is_defined: Bool[Tensor, ""]


def batch_cka(
    features: Float[Tensor, "batch num_features"],
    reference: Float[Tensor, "batch num_reference_features"],
    *,
    debiased: bool = False,
) -> BatchCKA:
    """Linear CKA of the features of the same images, as ``crossgraft.similarity.linear_cka`` defines it.

    Both are centred and divided by their norm, which changes neither the value nor the gradient, and keeps float32 from
    overflowing. A number that is nan makes the value nan.

    Args:
        features: One row per image, part of the graph.
        reference: The same images in the same order.
        debiased: Use the unbiased estimate of HSIC; needs four images.

    Cost: three products of b × b × d for b images of d features where b < d, of b × d × d else; forward and backward.
    """
    first, first_varies = _centred(features)
    second, second_varies = _centred(reference)
    count = len(first)
    if debiased and count < FEWEST_DEBIASED:
        return BatchCKA(0.0 * (first.sum() + second.sum()), torch.zeros_like(first_varies))
    measure = _hsic_of_grams if count < min(first.shape[1], second.shape[1]) else _hsic_of_features
    cross, own, other = measure(first, second, debiased)
    # nan is not "too small": it goes on into the value
    smallest = max(_SMALLEST_SCALE, _ROUNDING * torch.finfo(features.dtype).eps)
    is_defined = ~(own <= smallest) & ~(other <= smallest) & first_varies & second_varies
    scale = (
        torch.where(is_defined, own, torch.ones_like(own)).sqrt() * torch.where(is_defined, other, torch.ones_like(other)).sqrt()
    )
    return BatchCKA(torch.where(is_defined, cross / scale, torch.zeros_like(cross)), is_defined)


def cka_distance(
    features: Float[Tensor, "batch num_features"], reference: Float[Tensor, "batch num_reference_features"]
) -> Float[Tensor, ""]:
    """1 − CKA, debiased. Arguments and cost as of ``batch_cka``.

    Features that have collapsed to one are as far as can be: 1, without a gradient. Too few images say nothing: 0.
    """
    value, _ = batch_cka(features, reference, debiased=True)
    return 0 * value if len(features) < FEWEST_DEBIASED else 1 - value


def _centred(features: Float[Tensor, "batch num_features"]) -> tuple[Tensor, Tensor]:
    """Centred features of Frobenius norm 1, and whether there is any variance."""
    centred = features - features.mean(dim=0)
    centred = centred - centred.mean(dim=0)  # what rounding of a large mean has left
    size = torch.linalg.vector_norm(centred.detach())
    smallest = _ROUNDING * torch.finfo(features.dtype).eps * torch.linalg.vector_norm(features.detach())
    varies = ~(size <= smallest)
    return centred / torch.where(varies, size, torch.ones_like(size)), varies


def _hsic_of_grams(first: Tensor, second: Tensor, debiased: bool) -> tuple[Tensor, Tensor, Tensor]:
    """HSIC of both, of the first and of the second with itself, up to one common factor."""
    k, m = first @ first.T, second @ second.T
    if not debiased:
        return (k * m).sum(), (k * k).sum(), (m * m).sum()
    of_k, of_m = k.diagonal(), m.diagonal()
    return (
        _without_bias((k * m).sum(), of_k, of_m),
        _without_bias((k * k).sum(), of_k, of_k),
        _without_bias((m * m).sum(), of_m, of_m),
    )


def _hsic_of_features(first: Tensor, second: Tensor, debiased: bool) -> tuple[Tensor, Tensor, Tensor]:
    """The same without a matrix of images × images, because ⟨X Xᵀ, Y Yᵀ⟩ = ‖Xᵀ Y‖²."""
    cross, own, other = ((a.T @ b).square().sum() for a, b in ((first, second), (first, first), (second, second)))
    if not debiased:
        return cross, own, other
    of_k, of_m = first.square().sum(dim=1), second.square().sum(dim=1)
    return _without_bias(cross, of_k, of_m), _without_bias(own, of_k, of_k), _without_bias(other, of_m, of_m)


def _without_bias(products: Tensor, of_k: Tensor, of_m: Tensor) -> Tensor:
    """Eq. 5 of Song et al. (JMLR 13, 2012), times n (n − 3), from Σ k m and the diagonals of centred Gram matrices.

    Rows of those add up to 0, so without its diagonal row i of K adds up to −k_ii.
    """
    n = len(of_k)
    off_diagonal = products - of_k @ of_m
    return off_diagonal + of_k.sum() * of_m.sum() / ((n - 1) * (n - 2)) - 2 * (of_k @ of_m) / (n - 2)
