"""The expected empirical prediction that LEEP and N-LEEP share; they differ in where the source posterior comes from."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.sparse import csr_array

from crossgraft.types import ClassIndices

_SMALLEST_PROBABILITY = 1e-300
"""Clamp of the logarithm's argument."""
_BLOCK_ROWS = 1024


def empirical_prediction(
    posterior: Float64[np.ndarray, "num_rows num_source"], targets: ClassIndices, *, log: bool, rows: np.ndarray | None = None
) -> float:
    """mean_i (log) Σ_z θ_iz p(y_i | z), with p(y | z) estimated on the same rows (Nguyen et al. 2020, eqs. 1–2).

    A source class (or mixture component) without mass says nothing, so p(y | z) = p(y) there. Cost O(n·Z).

    Args:
        posterior: Posterior of the images, and perhaps of others, too.
        targets: Class index of each image.
        log: Whether the mean is one of logarithms.
        rows: The row of each image in ``posterior``, ascending; all rows where it is None.
    """
    num_samples = len(targets)
    rows = np.arange(num_samples) if rows is None else rows
    num_classes = int(targets.max()) + 1
    membership = csr_array((np.ones(num_samples), (targets, rows)), shape=(num_classes, len(posterior)))
    joint = membership @ posterior
    mass = joint.sum(axis=0)
    prior = np.bincount(targets) / num_samples
    conditional = np.where(mass > 0, joint / np.where(mass > 0, mass, 1.0), prior[:, None])
    predicted = np.empty(num_samples)
    for start in range(0, num_samples, _BLOCK_ROWS):  # conditional[targets] of all rows would be as large as posterior
        some = slice(start, start + _BLOCK_ROWS)
        predicted[some] = np.einsum("iz,iz->i", posterior[rows[some]], conditional[targets[some]])
    if log:
        return float(np.log(np.maximum(predicted, _SMALLEST_PROBABILITY)).mean())
    return float(predicted.mean())
