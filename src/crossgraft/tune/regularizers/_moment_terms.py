"""How far mean and covariance of a batch are from those that training started from, up to a rotation and a scale."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.tune.regularizers._covariance import Moments
from crossgraft.tune.regularizers._orthogonal import OrthogonalMap

Normalize = Literal["ref", "none"]


class MomentMatching(nn.Module):
    """R = Σ − α² Qᵀ Σ₀ Q and r = μ − α Qᵀ μ₀, and the gradients of ‖R‖² and ‖r‖² for Q in closed form.

    With G = ∂‖R‖²/∂Q = −4 α² Σ₀ Q R and M = α² QᵀΣ₀Q, the gradient along the skew-symmetric step of ``OrthogonalMap`` is
    W = QᵀG − GᵀQ = −4 (M R − (M R)ᵀ): one matrix product. For the means it is −2 (m rᵀ − r mᵀ) with m = α Qᵀμ₀. A term
    carries it as ⟨δ, W⟩, which is 0 because δ is: no graph is kept over Q.

    Args:
        size: d.
        like: Device and number type.
        learn_q: Otherwise Q = I.
        learn_alpha: Otherwise α = 1.
        normalize: ``ref`` divides ‖R‖² by ‖Σ₀‖², ‖r‖² by ‖μ₀‖² (where those are not 0).
        mean_weight: 0: there is no term of the means.
    """

    def __init__(
        self, size: int, like: Tensor, *, learn_q: bool, learn_alpha: bool, normalize: Normalize, mean_weight: float
    ) -> None:
        super().__init__()
        self.rotation = OrthogonalMap(size, like) if learn_q else None
        self.alpha = nn.Parameter(torch.ones((), device=like.device, dtype=like.dtype)) if learn_alpha else None
        self.normalize: Normalize = normalize
        self.mean_weight = mean_weight

    def terms(self, ours: Moments, start: Moments) -> dict[str, Float[Tensor, ""]]:
        """``covariance``, and ``mean`` where it has a weight; the gradient flows into ``ours``, Q and α."""
        target, target_mean = start.covariance, start.mean
        if self.rotation is not None:
            q = self.rotation.value
            target, target_mean = q.T @ target @ q, target_mean @ q
        if self.alpha is not None:
            target, target_mean = self.alpha.square() * target, self.alpha * target_mean
        residual = ours.covariance - target
        product = target.detach() @ residual.detach() if self.rotation is not None else residual
        terms = {"covariance": self._term(residual, product, -4, start.covariance)}
        if self.mean_weight:
            residual = ours.mean - target_mean
            product = torch.outer(target_mean.detach(), residual.detach())
            terms["mean"] = self.mean_weight * self._term(residual, product, -2, start.mean)
        return terms

    def _term(self, residual: Tensor, product: Tensor, factor: int, start: Tensor) -> Float[Tensor, ""]:
        """‖residual‖² + ⟨δ, W⟩ with W = factor · (product − productᵀ), divided where that is asked for."""
        term = _inner(residual, residual)
        if self.rotation is not None:
            term = term + factor * _inner(self.rotation.skew, product - product.T)
        if self.normalize == "none":
            return term
        size = _inner(start, start)
        return term / torch.where(size > 0, size, 1)

    def without_images(self, nothing: Float[Tensor, ""]) -> dict[str, Float[Tensor, ""]]:
        """The terms where there are too few images: ``nothing``, with a gradient of 0 for Q and α."""
        nothing = nothing + 0 * sum((parameter.sum() for parameter in self.parameters()), nothing)
        return {"covariance": nothing, "mean": nothing} if self.mean_weight else {"covariance": nothing}

    def move(self) -> None:
        """Q ← Q exp(δ)."""
        if self.rotation is not None:
            self.rotation.move()

    def learned(self) -> dict[str, Tensor]:
        """Q and α themselves, not copies."""
        found = {} if self.rotation is None else {"q": self.rotation.value}
        return found if self.alpha is None else {**found, "alpha": self.alpha.detach()}


def _inner(first: Tensor, second: Tensor) -> Float[Tensor, ""]:
    """Σ aᵢ bᵢ in one pass over both: passes over d × d numbers cost as much as one of the products."""
    return torch.dot(first.flatten(), second.flatten())
