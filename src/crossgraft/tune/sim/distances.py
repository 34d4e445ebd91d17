"""How far predicted tokens are from those they should reproduce: one number, a mean over images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

Tokens = Float[Tensor, "images tokens width"]
Distance = Callable[[Tensor, Tensor], Tensor]
"""From the prediction, part of the graph, to the target."""
_EPS = 1e-6
_TINY = 1e-24
"""Below what is added anyway; it lets channels that never vary have a gradient."""


def standardised(tokens: Tokens) -> Tokens:
    """Each channel of each image with mean 0 and (unbiased) standard deviation 1 over the tokens; equation 3."""
    centred = tokens - tokens.mean(dim=1, keepdim=True)
    # torch.std over an axis in the middle takes twenty times as long
    variance = centred.square().sum(dim=1, keepdim=True) / max(tokens.shape[1] - 1, 1)
    return centred / ((variance + _TINY).sqrt() + _EPS)


def l2(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Mean over tokens of the Euclidean norm, not squared."""
    return (prediction - target).norm(dim=-1).mean()


def cosine(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """2 − 2 · cosine of the angle between two tokens, averaged over tokens."""
    return (2 - 2 * functional.cosine_similarity(prediction, target, dim=-1)).mean()


def kl(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """KL divergence of softmax(prediction) from softmax(target) over channels, averaged over tokens and images."""
    log_probabilities = functional.log_softmax(prediction, dim=-1).flatten(0, 1)
    return functional.kl_div(log_probabilities, functional.softmax(target, dim=-1).flatten(0, 1), reduction="batchmean")


def wasserstein(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Wasserstein-1 distance between the values that a channel has over the tokens of an image, averaged."""
    return (prediction.sort(dim=1).values - target.sort(dim=1).values).abs().mean()


def l1(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Mean absolute difference."""
    return functional.l1_loss(prediction, target)


def mse(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Mean squared difference."""
    return functional.mse_loss(prediction, target)


def smooth_l1(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """Mean of a squared difference below 1 and an absolute one above."""
    return functional.smooth_l1_loss(prediction, target)


def norm_l2(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """``l2`` of standardised tokens: what the released code calls norm_mse."""
    return l2(standardised(prediction), standardised(target))


def norm_mse(prediction: Tokens, target: Tokens) -> Float[Tensor, ""]:
    """``mse`` of standardised tokens: what the paper writes."""
    return mse(standardised(prediction), standardised(target))


DISTANCES: Mapping[str, Distance] = {
    "norm_l2": norm_l2,
    "norm_mse": norm_mse,
    "mse": mse,
    "l1": l1,
    "smooth_l1": smooth_l1,
    "cosine": cosine,
    "kl": kl,
    "wasserstein": wasserstein,
}
"""By the name that an option has."""
OF_STANDARDISED: Mapping[str, Distance] = {**DISTANCES, "norm_l2": l2, "norm_mse": mse}
"""The same where tokens were standardised before they were predicted (``order="paper"``)."""
