"""Columns of mean 0 and variance 1, as both probes use them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.types import Features


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
