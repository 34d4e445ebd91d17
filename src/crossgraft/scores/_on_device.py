"""The algebra of symmetric matrices on a device: by torch, in float64.

Moments hold their matrix where it was formed: as an array of numpy on the host, or as a tensor of torch on a device. Both
have the operators that moments need (``-``, ``+``, ``@``, ``trace``, ``mean``); what differs stands here for the tensor, and
beside it, in ``_statistics`` and ``_moments``, for the array. Only vectors and matrices with few columns pass between host
and device.

``device="cpu"`` of torch runs the same code, which is how it is tested. It was never run on a card.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from crossgraft.scores._symmetric import Factor, Spectrum, to_host
from crossgraft.types import Features

NOT_THERE = (torch.OutOfMemoryError, torch.linalg.LinAlgError)  # pyright: ignore[reportPrivateImportUsage]
"""What an eigensolver of a device may end with where that of the host would not."""
_ROWS, _COLUMNS = 8192, 8192
"""Rows, or columns in the dual form, that are sent to the device at a time."""


def primal_products(
    features: Features, shift: np.ndarray, device: torch.device
) -> tuple[Tensor, Float64[np.ndarray, " num_features"], Float64[np.ndarray, " num_samples"]]:
    """Σ (x−s)(x−s)ᵀ on the device; Σ (x−s) and each ‖x−s‖²."""
    num_samples, num_features = features.shape
    product = torch.zeros(num_features, num_features, dtype=torch.float64, device=device)
    total = torch.zeros(num_features, dtype=torch.float64, device=device)
    squared_norms = torch.empty(num_samples, dtype=torch.float64, device=device)
    origin = torch.tensor(shift, device=device).double()
    for start in range(0, num_samples, _ROWS):
        rows = torch.tensor(features[start : start + _ROWS], device=device).double() - origin
        product.addmm_(rows.T, rows)
        total += rows.sum(dim=0)
        squared_norms[start : start + _ROWS] = rows.square().sum(dim=1)
    return product, to_host(total), to_host(squared_norms)


def dual_products(features: Features, shift: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor]:
    """(x_i−s)·(x_j−s) and (x_i−s)·s on the device."""
    num_samples, num_features = features.shape
    product = torch.zeros(num_samples, num_samples, dtype=torch.float64, device=device)
    along_shift = torch.zeros(num_samples, dtype=torch.float64, device=device)
    for start in range(0, num_features, _COLUMNS):
        part = torch.tensor(shift[start : start + _COLUMNS], device=device).double()
        columns = torch.tensor(features[:, start : start + _COLUMNS], device=device).double() - part
        product.addmm_(columns, columns.T)
        along_shift += columns @ part
    return product, along_shift


class DeviceSpectrum(Spectrum):
    """The spectrum of one symmetric matrix; vectors stay on the device. Cost one eigendecomposition, when it is made.

    Raises:
        torch.OutOfMemoryError: The memory of the device is full.
        torch.linalg.LinAlgError: The eigensolver of the device did not converge.
    """

    def __init__(self, matrix: Tensor) -> None:
        self.size = len(matrix)
        self._values, self._vectors = torch.linalg.eigh(matrix)

    @cached_property
    def values(self) -> Float64[np.ndarray, " size"]:
        """All eigenvalues, in ascending order."""
        return to_host(self._values)

    @cached_property
    def vectors(self) -> Float64[np.ndarray, "size size"]:
        """All eigenvectors, in the order of ``values``."""
        return to_host(self._vectors)

    def leading(self, number: int) -> Float64[np.ndarray, "size number"]:
        """The eigenvectors of the ``number`` largest eigenvalues, largest first; all of them where there are fewer."""
        return to_host(self._vectors[:, max(0, self.size - number) :].flip(1))

    def along(self, columns: Float64[np.ndarray, "size num_columns"]) -> Float64[np.ndarray, "size num_columns"]:
        """Vᵀ ``columns``: coordinates along every eigenvector, in the order of ``values``."""
        return to_host(self._vectors.T @ torch.tensor(columns, device=self._vectors.device))


class DeviceFactor(Factor):
    """The Cholesky factor of a regular matrix."""

    def __init__(self, lower: Tensor) -> None:
        self._tensor = lower

    def solve(self, columns: Float64[np.ndarray, "size num_columns"]) -> Float64[np.ndarray, "size num_columns"]:
        """The inverse of the matrix times ``columns``."""
        return to_host(torch.cholesky_solve(torch.tensor(columns, device=self._tensor.device), self._tensor))

    def energies(self, columns: Float64[np.ndarray, "size num_columns"]) -> Float64[np.ndarray, " num_columns"]:
        """cᵀ M⁻¹ c of each column c."""
        halved = torch.linalg.solve_triangular(self._tensor, torch.tensor(columns, device=self._tensor.device), upper=False)
        return to_host(halved.square().sum(dim=0))

    def smallest_pivot(self) -> float:
        """The smallest pivot of the elimination."""
        return float(self._tensor.diagonal().min()) ** 2


def factor_on_device(matrix: Tensor | np.ndarray, device: torch.device | None) -> DeviceFactor | None:
    """The Cholesky factor of a matrix that lies on a device, or is sent there; None where it is not positive definite."""
    lower, info = torch.linalg.cholesky_ex(matrix if isinstance(matrix, Tensor) else torch.tensor(matrix, device=device))
    return None if int(info) else DeviceFactor(lower)
