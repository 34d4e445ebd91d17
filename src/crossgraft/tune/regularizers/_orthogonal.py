"""An orthogonal matrix that an ordinary optimiser learns, from gradients in closed form: matrix products only."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

# Of ‖δ‖_F: its largest rotation θ is then by at most 1.06, and Newton–Schulz converges from the second order, whose
# singular values are up to 1 + θ⁴/8. They grow with every squaring, which is why halvings are more than pieces ask for.
_LARGEST_PIECE = 1.5
_MOST_POLISHES = 10

Square = Float[Tensor, "d d"]


class OrthogonalMap(nn.Module):
    """Q, and the skew-symmetric step δ that the optimiser takes from it: Q exp(δ), for δ = 0 between steps.

    The gradient of a loss L along δ at 0 is W = QᵀG − GᵀQ with G = ∂L/∂Q (entries above and below the diagonal count as
    one, as in ``torch.nn.utils.parametrizations.orthogonal``). The optimiser moves ``skew`` as it moves any parameter;
    ``move`` then puts that into Q, exp to second order, and returns ``skew`` to zero. Moments of the optimiser live in the
    same coordinates from step to step. Weight decay has nothing to shrink.

    Cost: two d × d matrices; a ``move`` is four matrix products of size d.

    Reference: Lezcano-Casado, *Trivializations for Gradient-Based Optimization on Manifolds*, NeurIPS 2019 (dynamic
    trivialisations); Newton–Schulz: Higham, *Functions of Matrices*, 2008, equation 8.36.
    """

    value: Square

    def __init__(self, size: int, like: Tensor) -> None:
        super().__init__()
        self.skew = nn.Parameter(torch.zeros(size, size, device=like.device, dtype=like.dtype))
        self.register_buffer("value", torch.eye(size, device=like.device, dtype=like.dtype))

    def move(self) -> None:
        """Q ← Q exp(δ), δ ← 0, without a gradient.

        Raises:
            FloatingPointError: δ is no number, or so long that rounding leaves no orthogonal matrix.
        """
        with torch.no_grad():
            step = _exponential_less_one(self.skew)
            # What rounding made of it that is not skew, the polish takes away.
            self.value.copy_(nearest_orthogonal(torch.addmm(self.value, self.value, step)))
            self.skew.zero_()


def nearest_orthogonal(matrix: Square) -> Square:
    """The orthogonal matrix that is nearest to one which is nearly orthogonal already, by Newton–Schulz iterations.

    The distance from orthogonality is squared by each. Two matrix products for each; one is enough after a small step.

    Raises:
        FloatingPointError: The matrix is too far from an orthogonal one, or not finite.
    """
    rounding, distance = torch.finfo(matrix.dtype).eps, math.inf
    for _ in range(_MOST_POLISHES):
        error = matrix.T @ matrix
        error.diagonal().sub_(1)
        matrix = torch.addmm(matrix, matrix, error, alpha=-0.5)
        distance = float(error.norm())
        if distance * distance <= rounding:
            break
    if not distance < 1:  # nan, too
        raise FloatingPointError("no orthogonal matrix is near")
    return matrix


def _exponential_less_one(step: Square) -> Square:
    """exp(δ) − I to second order for a small δ, else of a part of it, squared as often as it was halved."""
    norm = float(step.norm())
    halvings = max(0, math.ceil(4 / 3 * math.log2(norm / _LARGEST_PIECE))) if norm > 0 and math.isfinite(norm) else 0
    piece = step * 2.0**-halvings if halvings else step
    power = torch.addmm(piece, piece, piece, alpha=0.5)
    for _ in range(halvings):
        power = torch.addmm(power, power, power, beta=2)
    return power
