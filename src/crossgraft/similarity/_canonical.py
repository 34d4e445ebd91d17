"""Canonical correlations of two sets of features, by Cholesky factors where these are exact enough, else by QR factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float64
from scipy import linalg
from scipy.linalg import get_lapack_funcs

Matrix = Float64[np.ndarray, "_ _"]
Coefficients = Float64[np.ndarray, " _"]

_WORST_CONDITION = 1e6
"""Condition of a covariance (of columns of unit length) up to which its Cholesky factor is used: correlations lose at most about
this times 10⁻¹⁶."""
_SMALLEST = 1e-12
"""Directions that are shorter than this times the longest are rounding, not features."""


@dataclass(frozen=True, eq=False)
class Canonical:
    """What two whitened sets of features have in common.

    Attributes:
        coefficients: Canonical correlations, largest first, in [0, 1]; as many as the smaller rank.
        weights: For each canonical variate h of the first set Σ_j |⟨h, x_j⟩|, with x_j its columns.
        ranks: Linearly independent columns on each side.
    """

    coefficients: Coefficients
    weights: Coefficients
    ranks: tuple[int, int]


def canonical(x: Matrix, y: Matrix, *, with_weights: bool = False) -> Canonical:
    """Canonical correlations of centred features.

    Args:
        x: (n, d_x), the mean of each column is 0; not all columns are 0.
        y: (n, d_y), the same.
        with_weights: Also compute the weights, which are empty otherwise.

    Cost: n (d_x² + d_y² + 2 d_x d_y) operations and a singular value decomposition of d_x × d_y; by QR about three times that.
    """
    lengths = [np.sqrt(np.einsum("ij,ij->j", side, side)) for side in (x, y)]
    kept = [length > _SMALLEST * length.max() for length in lengths]
    x, y = (side if mask.all() else side[:, mask] for side, mask in zip((x, y), kept, strict=True))
    of_x, of_y = (length[mask] for length, mask in zip(lengths, kept, strict=True))
    factors = [
        _cholesky(side, length) if len(side) > side.shape[1] else None for side, length in ((x, of_x), (y, of_y))
    ]
    if factors[0] is not None and factors[1] is not None:
        between = (x.T @ y) / of_x[:, None] / of_y
        between = linalg.solve_triangular(factors[0], between, trans=1, overwrite_b=True, check_finite=False)
        between = linalg.solve_triangular(factors[1], between.T, trans=1, overwrite_b=True, check_finite=False).T
        back = factors[0] * of_x  # X = H R for whitened H: ⟨h, x_j⟩ = (Uᵀ R)_j
    else:
        (basis_x, back), (basis_y, _) = _orthonormal(x), _orthonormal(y)
        between = basis_x.T @ basis_y
    ranks = between.shape[0], between.shape[1]
    if not with_weights:
        found = linalg.svdvals(between, overwrite_a=True, check_finite=False)
        return Canonical(np.clip(found, 0, 1), np.empty(0), ranks)
    left, found, _ = svd(between)
    return Canonical(np.clip(found, 0, 1), np.abs(left.T @ back).sum(axis=1), ranks)


def _cholesky(side: Matrix, lengths: Coefficients) -> Matrix | None:
    """The upper factor of the correlations of the columns; None where it would lose digits."""
    correlations = (side.T @ side) / lengths[:, None] / lengths
    norm = float(np.abs(correlations).sum(axis=0).max())
    factorize, estimate = get_lapack_funcs(("potrf", "pocon"), dtype=np.float64)
    factor, info = factorize(correlations, lower=False, clean=True)
    if info:
        return None
    reciprocal, _ = estimate(factor, norm, uplo="U")
    return factor if reciprocal * _WORST_CONDITION > 1 else None


def svd(matrix: Matrix) -> tuple[Matrix, Coefficients, Matrix]:
    """Thin singular value decomposition, largest values first; U, σ and Vᵀ."""
    return linalg.svd(matrix, full_matrices=False, check_finite=False)  # type: ignore[return-value]


def _orthonormal(side: Matrix) -> tuple[Matrix, Matrix]:
    """Orthonormal directions of the columns and their coordinates in them, those left out that are rounding."""
    lengths = np.linalg.norm(side, axis=0)
    found: tuple[Matrix, Matrix, Any] = linalg.qr(side / lengths, mode="economic", pivoting=True, check_finite=False)  # type: ignore[assignment]
    basis, factor, order = found
    diagonal = np.abs(np.diag(factor))
    rank = int((diagonal > _SMALLEST * diagonal[0]).sum())
    coordinates = np.empty((rank, side.shape[1]))
    coordinates[:, order] = factor[:rank]
    return basis[:, :rank], coordinates * lengths
