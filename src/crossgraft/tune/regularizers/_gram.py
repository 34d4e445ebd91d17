"""How far the inner products between images are from those that training started from."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from crossgraft.tune.regularizers._procrustes import Features, centred_features


def gram_distance(features: Features, reference: Features) -> Float[Tensor, ""]:
    """‖K − K₀‖² / ‖K₀‖² of the Gram matrices K = CCᵀ of centred features C; 0 if C is C₀ rotated.

    No rotation changes K, so that the best Q of RepSim's covariances is in it already; and unlike a covariance it knows which
    image has which features. Reference features that do not vary at all give ‖K‖², as if ‖K₀‖ were 1.

    Args:
        features: One row per image, float32 or float64.
        reference: The same images; gets no gradient.

    Cost: two products of b × b × d forward and one backward, and b² numbers.
    """
    ours, theirs = centred_features(features), centred_features(reference.detach())
    gram, target = ours @ ours.T, theirs @ theirs.T
    size = target.square().sum()
    return (gram - target).square().sum() / torch.where(size > 0, size, 1)
