"""A projection for feature matrices that are large in both directions.

The d×d and the n×n form are both out of reach when n and d exceed 10 000. A randomised range finder (Halko, Martinsson
and Tropp, SIAM Review 2011, algorithm 4.4) keeps the leading directions of X; the scores then see X Q with QᵀQ = I.
"""

from __future__ import annotations

import numpy as np

from crossgraft import seeding
from crossgraft.types import Features

LARGE = 10_000
"""Rows and columns above which neither form of the Gram matrix is formed."""
NUM_DIRECTIONS = 4096
"""Directions kept of larger matrices."""
_OVERSAMPLING = 16
_POWER_ITERATIONS = 2


def reduce_when_large(features: Features) -> tuple[np.ndarray, tuple[str, ...]]:
    """The features themselves, or their projection and a warning that says how much of their energy is kept."""
    num_samples, num_features = features.shape
    if num_samples <= LARGE or num_features <= LARGE:
        return features, ()
    directions = _leading_directions(features, NUM_DIRECTIONS)
    projected = features @ directions
    kept = _energy(projected) / max(_energy(features), np.finfo(np.float64).tiny)
    return projected, (
        f"{num_features} features of {num_samples} images were reduced to {directions.shape[1]} by randomised PCA; "
        f"{kept:.4f} of their energy is kept.",
    )


def _energy(matrix: np.ndarray) -> float:
    return float(np.einsum("ij,ij->", matrix, matrix, dtype=np.float64))


def _leading_directions(features: np.ndarray, num_directions: int) -> np.ndarray:
    """Orthonormal columns that span the leading right singular vectors approximately; seeded. Cost O(n·d·directions)."""
    num_features = features.shape[1]
    noise = seeding.generator(0, "randomised PCA").standard_normal((num_features, num_directions + _OVERSAMPLING))
    basis = noise.astype(features.dtype)
    for _ in range(_POWER_ITERATIONS):
        basis = np.linalg.qr(features.T @ (features @ basis))[0]
    projected = features @ basis
    _, rotation = np.linalg.eigh(projected.T.astype(np.float64) @ projected)
    return basis @ rotation[:, ::-1][:, :num_directions].astype(features.dtype)
