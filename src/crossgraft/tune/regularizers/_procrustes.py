"""How well one set of features can be turned into another by a rotation and a scale, in closed form."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

Features = Float[Tensor, "batch num_features"]

# Of the norm of features: equal rows minus their mean are as large as the rounding of that mean.
_ROUNDING = 10.0


def procrustes_distance(features: Features, reference: Features) -> Float[Tensor, ""]:
    """1 − ‖FᵀF₀‖_* / (‖F‖ ‖F₀‖) of centred features, in [0, 1]; 0 if F is F₀ rotated and scaled.

    It is min over orthogonal Q and α of ‖F/‖F‖ − α F₀ Q‖² up to the square: half of Ding's squared Procrustes distance. The
    gradient goes to ``features`` only. Where singular values are 0, which rotation is best is open and those directions
    pull at nothing; features that do not vary at all give 1 without a gradient, features that are not finite give nan.

    Args:
        features: One row per image, float32 or float64.
        reference: The same images.

    Cost: a singular value decomposition of size min(b, d).

    Reference: Ding, Denain, Steinhardt, *Grounding Representation Similarity with Statistical Testing*, NeurIPS 2021.
    """
    centred, target = centred_features(features), centred_features(reference.detach())
    if not bool(centred.isfinite().all()):
        return features.sum() * float("nan")
    scale = torch.linalg.vector_norm(centred) * torch.linalg.vector_norm(target)
    shared: Tensor = _NuclearNormOfProduct.apply(centred, target)  # pyright: ignore[reportAssignmentType]
    return 1 - shared / scale.clamp_min(torch.finfo(features.dtype).tiny)


def centred_features(features: Features) -> Features:
    """Zeros where all rows are the same: there the mean is rounded, and what it leaves is no variance."""
    centred = features - features.mean(0)
    smallest = _ROUNDING * torch.finfo(features.dtype).eps * torch.linalg.vector_norm(features.detach())
    return torch.where(torch.linalg.vector_norm(centred.detach()) <= smallest, 0, centred)


class _NuclearNormOfProduct(torch.autograd.Function):
    """‖AᵀB‖_* for A, B (b, d); with AᵀB = U S Vᵀ its gradient for A is B V Uᵀ."""

    @staticmethod
    def forward(ctx: Any, first: Features, second: Features) -> Tensor:
        if len(first) >= first.shape[1]:
            left, values, right = torch.linalg.svd(first.T @ second)
            gradient = second @ (_kept(values, first) * right.mT) @ left.mT
        else:
            # AᵀB = Q_a (R_a R_bᵀ) Q_bᵀ: what is decomposed is b × b.
            (base, core), (_, other) = torch.linalg.qr(first.T), torch.linalg.qr(second.T)
            left, values, right = torch.linalg.svd(core @ other.T)
            gradient = other.T @ (_kept(values, first) * right.mT) @ (base @ left).T
        ctx.save_for_backward(gradient)
        return values.sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return gradients[0] * gradient, None


def _kept(values: Float[Tensor, " size"], like: Features) -> Float[Tensor, " size"]:
    """1 for singular values that are not rounding, else 0."""
    return (values > values.max() * max(like.shape) * torch.finfo(like.dtype).eps).to(like.dtype)
