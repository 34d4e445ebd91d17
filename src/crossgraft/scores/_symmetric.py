"""One symmetric matrix: sums over it, and on the host, with LAPACK, its spectrum and its Cholesky factor.

Eigenvalues and eigenvectors are expensive parts of most scores, and few scores need all vectors. So the matrix is reduced to a
tridiagonal one, once: QᵀMQ = T. The eigenvalues of T are cheap; eigenvectors Z of T cost O(size) each, and QZ, those of M,
2·size² each. The products Vᵀ B = Zᵀ (Qᵀ B) with few columns B need no vector of M at all.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64
from scipy.linalg import (
    LinAlgError,
    cho_solve,
    cholesky,
    eigh_tridiagonal,
    eigvalsh_tridiagonal,
    get_lapack_funcs,
    solve_triangular,
)

Matrix = Any
"""A symmetric matrix in float64 where it was formed: an array on the host, or a tensor of torch on a device."""


def to_host(values: Matrix) -> np.ndarray:
    """The same numbers as an array."""
    return values if isinstance(values, np.ndarray) else values.cpu().numpy()


def norm(matrix: Matrix) -> float:
    """√ Σ m_ij²."""
    return float(np.linalg.norm(matrix) if isinstance(matrix, np.ndarray) else matrix.norm())


def energy(matrix: Matrix) -> float:
    """Σ m_ij²."""
    return float(np.square(matrix).sum() if isinstance(matrix, np.ndarray) else matrix.square().sum())


def add_ridge(matrix: Matrix, ridge: float) -> None:
    """Add to the diagonal, in place."""
    if isinstance(matrix, np.ndarray):
        matrix.flat[:: len(matrix) + 1] += ridge
    else:
        matrix.diagonal().add_(ridge)


Symmetric = Float64[np.ndarray, "size size"]

_BLOCK_COLUMNS = 64
"""Columns of workspace that LAPACK gets for each column of the result."""


class Spectrum:
    """The spectrum of one symmetric matrix; vectors are columns.

    What is asked for does not depend on what was asked for before, to the last bit.

    Args:
        matrix: Symmetric matrix, which is not written to.
    """

    def __init__(self, matrix: Symmetric) -> None:
        self.size = len(matrix)
        sytrd, workspace_of = get_lapack_funcs(("sytrd", "sytrd_lwork"), dtype=np.float64)
        workspace, _ = workspace_of(self.size, lower=1)
        # Transposed, which changes nothing in a symmetric matrix, it lies as LAPACK wants it.
        self._reflectors, self._diagonal, self._beside, self._factors, _ = sytrd(matrix.T, lower=1, lwork=int(workspace))
        self._leading: dict[int, np.ndarray] = {}

    @cached_property
    def values(self) -> Float64[np.ndarray, " size"]:
        """All eigenvalues, in ascending order."""
        if self.size == 1:
            return self._diagonal.copy()
        return np.asarray(eigvalsh_tridiagonal(self._diagonal, self._beside, lapack_driver="sterf"))

    @cached_property
    def vectors(self) -> Float64[np.ndarray, "size size"]:
        """All eigenvectors, in the order of ``values``. Cost 2·size³ after the reduction."""
        return self._multiplied("N", self._all_of_tridiagonal)

    def leading(self, number: int) -> Float64[np.ndarray, "size number"]:
        """The eigenvectors of the ``number`` largest eigenvalues, largest first; all of them where there are fewer."""
        number = min(number, self.size)
        if 2 * number > self.size:
            return self.vectors[:, ::-1][:, :number]
        if number not in self._leading:
            self._leading[number] = self._multiplied("N", self._of_tridiagonal(self.size - number))[:, ::-1]
        return self._leading[number]

    def along(self, columns: Float64[np.ndarray, "size num_columns"]) -> Float64[np.ndarray, "size num_columns"]:
        """Vᵀ ``columns``: coordinates along every eigenvector, in the order of ``values``. Cost 4·size² a column."""
        return self._all_of_tridiagonal.T @ self._multiplied("T", columns)

    @property
    def smallest(self) -> float:
        """Up to here an eigenvalue is nothing but rounding, in float64: σ_max · max(1e-15, 10 · size · ε)."""
        return float(self.values[-1]) * max(1e-15, 10 * self.size * np.finfo(np.float64).eps)

    def is_in_doubt(self, values: Float64[np.ndarray, " some"]) -> bool:
        """Whether one of these ``values`` is neither empty nor above what float32 products leave as noise."""
        noise = float(self.values[-1]) * self.size * np.finfo(np.float32).eps
        return bool(((np.abs(values) > self.smallest) & (values < noise)).any())

    @cached_property
    def _all_of_tridiagonal(self) -> Float64[np.ndarray, "size size"]:
        return self._of_tridiagonal(0)

    def _of_tridiagonal(self, first: int) -> np.ndarray:
        """Eigenvectors of T from the one of index ``first`` on."""
        if self.size == 1:
            return np.ones((1, 1))
        diagonal, beside, chosen = self._diagonal, self._beside, (first, self.size - 1)
        try:
            if first == 0:  # by index, all eigenvalues would be found by bisection, ten times slower
                return eigh_tridiagonal(diagonal, beside, lapack_driver="stemr")[1]
            return eigh_tridiagonal(diagonal, beside, select="i", select_range=chosen, lapack_driver="stemr")[1]
        except LinAlgError:  # eigenvalues in a cluster that relatively robust representations do not resolve
            return eigh_tridiagonal(diagonal, beside, lapack_driver="stev")[1][:, first:]

    def _multiplied(self, transposed: Literal["N", "T"], columns: np.ndarray) -> np.ndarray:
        """Q or Qᵀ times ``columns``; Q leaves the first coordinate alone."""
        if self.size == 1 or columns.shape[1] == 0:
            return columns
        (ormqr,) = get_lapack_funcs(("ormqr",), dtype=np.float64)
        product = np.empty(columns.shape, order="F")
        product[0] = columns[0]
        product[1:], _, _ = ormqr(
            "L",
            transposed,
            self._reflectors[1:, :-1],
            self._factors,
            np.asfortranarray(columns[1:]),
            lwork=_BLOCK_COLUMNS * columns.shape[1],
        )
        return product


class Factor:
    """The Cholesky factor of one positive definite matrix."""

    def __init__(self, lower: Symmetric) -> None:
        self._lower = lower

    @classmethod
    def of(cls, matrix: Symmetric) -> Factor | None:
        """None where the matrix is not positive definite; the upper triangle of the matrix is read. Cost size³/3."""
        try:
            return cls(cholesky(matrix.T, lower=True, overwrite_a=False, check_finite=False))
        except LinAlgError:
            return None

    def solve(self, columns: Float64[np.ndarray, "size num_columns"]) -> Float64[np.ndarray, "size num_columns"]:
        """The inverse of the matrix times ``columns``. Cost 2·size² a column."""
        return cho_solve((self._lower, True), columns, check_finite=False)

    def energies(self, columns: Float64[np.ndarray, "size num_columns"]) -> Float64[np.ndarray, " num_columns"]:
        """cᵀ M⁻¹ c = ‖L⁻¹ c‖² of each column c, for M = L Lᵀ. Cost size² a column."""
        halved = solve_triangular(self._lower, columns, lower=True, check_finite=False)
        return np.einsum("ij,ij->j", halved, halved)

    def smallest_pivot(self) -> float:
        """The smallest pivot of the elimination."""
        return float(np.diagonal(self._lower).min() ** 2)
