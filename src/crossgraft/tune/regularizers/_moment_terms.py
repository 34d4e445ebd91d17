"""How far mean and covariance of a batch are from those that training started from, up to a rotation and a scale."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from crossgraft.errors import DivergedError
from crossgraft.tune.regularizers._covariance import FactoredMoments, Moments
from crossgraft.tune.regularizers._orthogonal import OrthogonalMap, Square

Normalize = Literal["ref", "none"]


class MomentMatching(nn.Module):
    """R = Σ − α² Qᵀ Σ₀ Q and r = μ − α Qᵀ μ₀, and the gradients of ‖R‖² and ‖r‖² for Q in closed form.

    With G = ∂‖R‖²/∂Q = −4 α² Σ₀ Q R and M = α² QᵀΣ₀Q, the gradient along the skew-symmetric step of ``OrthogonalMap`` is
    W = QᵀG − GᵀQ = −4 (M R − (M R)ᵀ) = −4 (M Σ − (M Σ)ᵀ), because M commutes with itself. For the means it is
    −2 (m rᵀ − r mᵀ) with m = α Qᵀμ₀. A term carries it as ⟨δ, W⟩, which is 0 because δ is: no graph is kept over Q.

    Of b < d images Σ = CᵀC has rank b, and all of it follows from C M = C Qᵀ Σ₀ Q without a product of two d × d matrices:
    ‖R‖² = ‖C Cᵀ‖² − 2 ⟨C M, C⟩ + ‖M‖² with ‖M‖ = α² ‖Σ₀‖, and M Σ = (C M)ᵀ C.

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

    def terms(self, ours: Moments | FactoredMoments, start: Moments) -> dict[str, Float[Tensor, ""]]:
        """``covariance``, and ``mean`` where it has a weight; the gradient flows into ``ours``, Q and α."""
        if isinstance(ours, FactoredMoments):
            square, product = self._of_rows(ours.rows, start.covariance)
        else:
            square, product = self._of_matrices(ours.covariance, start.covariance)
        terms = {"covariance": self._term(square, product, -4, start.covariance)}
        if self.mean_weight:
            target = start.mean if self.rotation is None else start.mean @ self.rotation.value
            target = target if self.alpha is None else self.alpha * target
            residual = ours.mean - target
            product = torch.outer(target.detach(), residual.detach())
            terms["mean"] = self.mean_weight * self._term(_inner(residual, residual), product, -2, start.mean)
        return terms

    def _of_matrices(self, ours: Square, start: Square) -> tuple[Float[Tensor, ""], Square | None]:
        """‖R‖², and M Σ where Q is learned."""
        target = start
        if self.rotation is not None:
            target = self.rotation.value.T @ target @ self.rotation.value
        if self.alpha is not None:
            target = self.alpha.square() * target
        residual = ours - target
        product = target.detach() @ ours.detach() if self.rotation is not None else None
        return _inner(residual, residual), product

    def _of_rows(self, rows: Float[Tensor, "b d"], start: Square) -> tuple[Float[Tensor, ""], Square | None]:
        """The same of Σ = CᵀC, for the rows C."""
        scale = 1 if self.alpha is None else self.alpha.square()
        with torch.no_grad():
            turned = rows @ start
            if self.rotation is not None:
                turned = rows @ self.rotation.value.T @ start @ self.rotation.value
        gram = rows @ rows.T
        # ⟨C M, C⟩, whose gradient for C is 2 C M because M is symmetric.
        overlap = 2 * _inner(turned, rows) - _inner(turned, rows.detach())
        square = _inner(gram, gram) - 2 * scale * overlap + scale * scale * _inner(start, start)
        product = None if self.rotation is None else turned.T @ rows.detach()
        if product is not None and self.alpha is not None:
            product = self.alpha.detach().square() * product
        return square, product

    def _term(self, square: Tensor, product: Tensor | None, factor: int, start: Tensor) -> Float[Tensor, ""]:
        """Adds ⟨δ, W⟩ to it, with W = factor · (product − productᵀ), divided where that is asked for."""
        term = square
        if self.rotation is not None and product is not None:
            term = term + factor * _inner(self.rotation.skew, product - product.T)
        if self.normalize == "none":
            return term
        size = _inner(start, start)
        return term / torch.where(size > 0, size, 1)

    def without_images(self, nothing: Float[Tensor, ""]) -> dict[str, Float[Tensor, ""]]:
        """The terms where there are too few images: ``nothing``, with a gradient of 0 for Q and α."""
        nothing = nothing + 0 * sum((parameter.sum() for parameter in self.parameters()), nothing)
        return {"covariance": nothing, "mean": nothing} if self.mean_weight else {"covariance": nothing}

    def move(self, step: int) -> None:
        """Q ← Q exp(δ), after the step of that number.

        Raises:
            DivergedError: δ is so long that no rotation is left.
        """
        if self.rotation is None:
            return
        try:
            self.rotation.move()
        except FloatingPointError as error:
            raise DivergedError(
                f"Training stopped in step {step}: the rotation Q of repsim diverged ({error}). Try a smaller q_learning_rate of "
                "repsim (by default it is --learning-rate), or repsim:learn_q=false. The last checkpoint is still good."
            ) from error

    def learned(self) -> dict[str, Tensor]:
        """Q and α themselves, not copies."""
        found = {} if self.rotation is None else {"q": self.rotation.value}
        return found if self.alpha is None else {**found, "alpha": self.alpha.detach()}


def _inner(first: Tensor, second: Tensor) -> Float[Tensor, ""]:
    """Σ aᵢ bᵢ in one pass over both: passes over d × d numbers cost as much as one of the products."""
    return torch.dot(first.flatten(), second.flatten())
