"""Linear discriminant analysis with a shrunk within-class scatter: what SFDA, ETran and NCTI have in common.

The published codes solve a generalised eigenproblem of between- and within-class scatter and use *all* eigenvectors V.
As VVᵀ = A⁻¹ for the shrunk within-class scatter A, the eigenproblem is not needed: one Cholesky factor and C right-hand
sides give the same posterior.

Notation: W are the features minus their class means, over √n, so that S_w = WᵀW. For n < d the n×n matrix WWᵀ serves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np
from jaxtyping import Float64

from crossgraft.scores._statistics import Statistics, factor_of
from crossgraft.scores._symmetric import add_ridge, to_host

SMALLEST_SHRINKAGE = 1e-10
_POWER_STEPS = 3
_BLOCK_ROWS = 256
_PRODUCT_ROWS = 64
"""Rows that stay in the cache between their conversion to float64 and their product."""
_ROUNDING = 1e-6
"""Share of the scatter that differences of float32 products cannot resolve."""
_COARSE = 1e2 * float(np.finfo(np.float32).eps)
"""Smallest pivot of a shrunk scatter, as a share of the whole, that products in float32 resolve."""

R = TypeVar("R")


class TooCoarseError(Exception):
    """Products in float32 leave nothing but rounding of what is asked for."""


def with_enough_digits(compute: Callable[[Statistics], R], statistics: Statistics) -> R:
    """``compute(statistics)``, in float64 if float32 is too coarse for it."""
    try:
        return compute(statistics)
    except TooCoarseError:
        return compute(statistics.in_float64)


class WithinClass:
    """Features around their class means, and what follows from their scatter.

    Args:
        offsets: x − m for any fixed point m near the mean, (n, d). Products of rows run in its dtype (float32 is twice
            as fast, and what is multiplied is centred), everything after them in float64.
        statistics: Statistics of the same labels.
        scatter: Scatter matrix of the offsets around their mean, or its dual for n < d, if it is known already.
    """

    def __init__(self, offsets: np.ndarray, statistics: Statistics, *, scatter: np.ndarray | None = None) -> None:
        self.offsets = offsets
        self.device = statistics.label_free.device
        self.targets = statistics.targets
        self.class_counts = statistics.class_counts
        self.num_samples, self.num_features = offsets.shape
        self.means = statistics.class_sums(offsets) / self.class_counts[:, None]
        self.is_dual = self.num_samples < self.num_features
        self.matrix = self._product() if scatter is None else self._from(scatter, statistics)
        self.trace = float(np.trace(self.matrix))

    def _product(self) -> np.ndarray:
        """S_w, or its dual for n < d. Cost n·d²/2 or n²·d/2."""
        product = self.within @ self.within.T if self.is_dual else self.within.T @ self.within
        return product.astype(np.float64)

    def _from(self, scatter: np.ndarray, statistics: Statistics) -> np.ndarray:
        """The same from the whole scatter, unless next to nothing of it is within the classes and would be rounding."""
        if self.is_dual:
            matrix = _within_of_dual(scatter, statistics) / self.num_samples
        else:
            spread = self.means - statistics.class_counts @ self.means / self.num_samples
            matrix = (scatter - (spread.T * self.class_counts) @ spread) / self.num_samples
        is_rounding = np.trace(matrix) * self.num_samples <= _ROUNDING * np.trace(scatter)
        return self._product() if is_rounding else matrix

    @classmethod
    def of(cls, statistics: Statistics) -> WithinClass:
        """The scatter of the features that ``statistics`` describe, whose Gram matrix is shared with other scores."""
        label_free = statistics.label_free
        offsets = label_free.features - label_free.mean.astype(label_free.features.dtype)
        return cls(offsets, statistics, scatter=to_host(label_free.moments.scatter()))

    @cached_property
    def within(self) -> np.ndarray:
        """W, the offsets minus their class means, over √n; in the dtype of the offsets."""
        dtype = self.offsets.dtype
        means, root = self.means.astype(dtype), dtype.type(self.num_samples**0.5)
        within = np.empty_like(self.offsets)
        for start in range(0, self.num_samples, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            np.subtract(self.offsets[rows], means[self.targets[rows]], out=within[rows])
            within[rows] /= root
        return within

    def leading_variance(self) -> float:
        """xᵀ S_w v after three double steps of power iteration from the row sums of S_w, as published.

        In the dual all iterates lie in the span of the rows of W, x = Wᵀa, so that S_w x = Wᵀ(G a) with G = WWᵀ, and
        xᵀy = aᵀG b: after the first step only the n×n matrix is needed.
        """
        start = np.ones(self.num_features)
        x = self.within @ start if self.is_dual else self.matrix @ start
        v = x
        for _ in range(_POWER_STEPS):
            v = self._normalised(self.matrix @ x)
            x = self._normalised(self.matrix @ v)
        applied = self.matrix @ v
        return float((self.matrix @ x) @ applied if self.is_dual else x @ applied)

    def _normalised(self, vector: np.ndarray) -> np.ndarray:
        """The vector scaled to length 1; in the dual ``vector`` holds coefficients of the rows of W."""
        length = math.sqrt(max(float(vector @ (self.matrix @ vector if self.is_dual else vector)), 0.0))
        return vector / length if length > 0 else vector

    def solve(self, columns: np.ndarray, shrinkage: float) -> np.ndarray:
        """A⁻¹ times ``columns`` (d, k) with A = (1−s) S_w + s tr(S_w)/d I.

        In the dual by Woodbury: A⁻¹M = (M − Wᵀ (ρI + WWᵀ)⁻¹ W M) / (sμ), μ = tr(S_w)/d, ρ = sμ/(1−s).

        Raises:
            TooCoarseError: The features are float32, and their scatter has directions that are empty but for rounding.
        """
        ridge = shrinkage * self.trace / self.num_features
        resolution = 0.0 if self.offsets.dtype == np.float64 else _COARSE * float(np.linalg.norm(self.matrix))
        if not self.is_dual:
            return self._solve(1 - shrinkage, ridge, columns, resolution)
        if ridge < resolution:  # the null directions of the dual are always empty
            raise TooCoarseError
        if shrinkage == 1:
            return columns / ridge
        inner = self._solve(1.0, ridge / (1 - shrinkage), self.within @ columns, resolution)
        return (columns - self.within.T @ inner) / ridge

    def _solve(self, factor: float, ridge: float, columns: np.ndarray, resolution: float) -> np.ndarray:
        """(factor · matrix + ridge · I)⁻¹ times ``columns``, for a matrix known up to ``resolution``."""
        regular = factor * self.matrix
        add_ridge(regular, ridge)
        factorised = factor_of(regular, self.device)
        if factorised is None:  # the shrinkage is at its floor and rounding made the matrix indefinite
            if resolution:
                raise TooCoarseError
            values, vectors = np.linalg.eigh(factor * self.matrix)
            clamped = np.maximum(values, 0.0) + ridge
            return vectors @ ((vectors.T @ columns) / clamped[:, None])
        if factorised.smallest_pivot() < resolution:
            raise TooCoarseError
        return factorised.solve(columns)

    def log_joint(self, shrinkage: float) -> Float64[np.ndarray, "num_samples num_classes"]:
        """Return x A⁻¹ μ_c − ½ μ_c A⁻¹ μ_c + ln p_c, whose softmax over c is the posterior.

        Without any scatter within the classes (every class one point, or one image) only the nearest mean remains.
        """
        log_prior = np.log(self.class_counts / self.num_samples)
        if self.trace == 0:
            squared = np.square(self.offsets[:, None, :] - self.means[None]).sum(axis=2)
            return np.where(squared == squared.min(axis=1, keepdims=True), log_prior, -np.inf)
        directions = self.solve(self.means.T, shrinkage)
        quadratic = np.einsum("cd,dc->c", self.means, directions)
        return _product_in_blocks(self.offsets, directions) - 0.5 * quadratic + log_prior

    def log_joint_of_nearest_mean(self) -> Float64[np.ndarray, "num_samples num_classes"]:
        """The same with A = I: x μ_c − ½ ‖μ_c‖² + ln p_c."""
        log_prior = np.log(self.class_counts / self.num_samples)
        return self.offsets @ self.means.T - 0.5 * np.square(self.means).sum(axis=1) + log_prior


def shrinkage_of(within: WithinClass) -> float:
    """The shrinkage s = max(exp(−5λ), 1e-10), λ the leading eigenvalue of S_w (Shao et al. 2022, eq. 5)."""
    return max(math.exp(-5 * within.leading_variance()), SMALLEST_SHRINKAGE)


def posterior_of(log_joint: np.ndarray, *, dtype: type[np.float64] | None = None) -> np.ndarray:
    """Softmax over the columns, in one array, as logits of 21 000 source classes are large."""
    posterior = np.subtract(log_joint, log_joint.max(axis=1, keepdims=True), dtype=dtype)
    np.exp(posterior, out=posterior)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior


def _product_in_blocks(offsets: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """``offsets @ directions`` in float64, without a float64 copy of all offsets."""
    product = np.empty((len(offsets), directions.shape[1]))
    for start in range(0, len(offsets), _PRODUCT_ROWS):
        rows = slice(start, start + _PRODUCT_ROWS)
        np.matmul(offsets[rows].astype(np.float64), directions, out=product[rows])
    return product


def _within_of_dual(scatter: np.ndarray, statistics: Statistics) -> np.ndarray:
    """(I − P) D (I − P) for the dual scatter D, P the projection onto class means. Cost O(n²)."""
    counts = statistics.class_counts[:, None]
    rows = scatter - (statistics.class_sums(scatter) / counts)[statistics.targets]
    return rows - (statistics.class_sums(rows.T) / counts)[statistics.targets].T
