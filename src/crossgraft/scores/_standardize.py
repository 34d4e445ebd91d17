"""Columns of mean 0 and variance 1, as the probes, PARC and ITM use them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Float64

from crossgraft.scores._moments import BLOCK_ROWS, ColumnMoments, shifted_blocks
from crossgraft.types import Features

_SMALLEST_DEVIATION = 1e-6
"""Deviation of a feature relative to the typical one, below which it is not scaled up to variance 1."""


class Standardization(NamedTuple):
    """x ↦ (x − mean)·scale, estimated on one set of rows; constant columns get the scale 0."""

    mean: Float64[np.ndarray, " num_features"]
    scale: Float[np.ndarray, " num_features"]  # in the number type of the features

    @classmethod
    def fit(cls, features: Features) -> Standardization:
        """Estimate mean and (1/n) standard deviation of each column. Cost O(n·d)."""
        mean = features.mean(axis=0, dtype=np.float64)
        centred = features - mean.astype(features.dtype)
        deviation = np.sqrt(np.einsum("ij,ij->j", centred, centred) / len(features))
        # A constant column has no deviation but rounding; dividing by it would blow that up to a feature.
        rounding = 10 * np.finfo(features.dtype).eps + len(features) * np.finfo(np.float64).eps
        resolution = rounding * np.abs(mean)
        is_varying = deviation > resolution
        scale = np.where(is_varying, 1 / np.where(is_varying, deviation, 1.0), 0.0)
        return cls(mean, scale)

    def apply(self, features: Features) -> Float[np.ndarray, "num_samples num_features"]:
        """The standardised rows, in their dtype."""
        dtype = features.dtype
        return (features - self.mean.astype(dtype)) * self.scale.astype(dtype)


def unit_variance(features: Features) -> Float32[np.ndarray, "num_samples num_features"]:
    """Columns of mean 0 and variance 1 (n − 1), as ITM wants them; constant ones are 0. Float32 whatever comes in."""
    mean, deviations = ColumnMoments.of(features)
    deviations *= math.sqrt(len(features) / (len(features) - 1))
    deviations[deviations <= 1e2 * np.finfo(features.dtype).eps * np.abs(mean)] = 0
    smallest = _SMALLEST_DEVIATION * np.sqrt(np.square(deviations).mean())
    scale = np.divide(1, np.maximum(deviations, smallest), out=np.zeros_like(deviations), where=deviations > 0)
    points = np.empty(features.shape, dtype=np.float32)
    for index, block in enumerate(shifted_blocks(features, mean.astype(features.dtype))):
        rows = slice(index * BLOCK_ROWS, index * BLOCK_ROWS + len(block))
        np.multiply(block, scale.astype(features.dtype), out=points[rows], casting="same_kind")
    return points
