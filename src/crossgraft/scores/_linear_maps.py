"""Linear maps fitted by L-BFGS, with a scale for each principal direction so that few steps are enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from jaxtyping import Float, Float64

Loss = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""Scores (n, C) → the mean loss, and its derivative by the scores (n, C)."""


class LinearMap(NamedTuple):
    """x ↦ x W + b, and how the fit went.

    Attributes:
        weight: W, (q, C).
        bias: b, (C,), not penalised.
        objective: Mean loss + ½ penalty ‖W‖².
        has_converged: Whether the steps were enough.
    """

    weight: Float64[np.ndarray, "num_directions num_outputs"]
    bias: Float64[np.ndarray, " num_outputs"]
    objective: float
    has_converged: bool

    def scores(self, points: np.ndarray) -> np.ndarray:
        """The scores x W + b of every row."""
        return points @ self.weight.astype(points.dtype) + self.bias.astype(points.dtype)


def fit_linear_map(
    points: Float[np.ndarray, "num_samples num_directions"],
    loss: Loss,
    *,
    num_outputs: int,
    penalty: float,
    curvature: float,
    max_iterations: int,
    tolerance: float = 1e-6,
) -> LinearMap:
    """Minimise mean loss(x W + b) + ½ penalty ‖W‖² from W = 0, b = 0.

    Args:
        points: Centred, with uncorrelated columns: then the Hessian is at most curvature · var_j + penalty in direction
            j, and dividing by its root makes all directions alike.
        loss: Convex in the scores.
        num_outputs: C.
        penalty: > 0.
        curvature: Bound of the second derivative of the loss by one score.
        max_iterations: Steps of L-BFGS, each O(n·q·C).
        tolerance: Largest entry of the scaled gradient at which the steps stop.
    """
    num_samples, num_directions = points.shape
    variance = np.einsum("ij,ij->j", points, points, dtype=np.float64) / num_samples
    scale = 1 / np.sqrt(np.append(curvature * variance + penalty, curvature))[:, None]
    size = num_directions * num_outputs

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        scaled = scale * flat.reshape(num_directions + 1, num_outputs)
        weight, bias = scaled[:-1], scaled[-1]
        value, slope = loss(points @ weight.astype(points.dtype) + bias.astype(points.dtype))
        gradient = np.vstack([points.T @ slope + penalty * weight, slope.sum(axis=0, dtype=np.float64)])
        return value + 0.5 * penalty * float(np.square(weight).sum()), (scale * gradient).ravel()

    optimum = scipy.optimize.minimize(
        objective,
        np.zeros(size + num_outputs),
        method="L-BFGS-B",
        jac=True,
        options={"maxiter": max_iterations, "ftol": 0.0, "gtol": tolerance, "maxcor": 20},
    )
    solution = scale * optimum.x.reshape(num_directions + 1, num_outputs)
    return LinearMap(solution[:-1], solution[-1], float(optimum.fun), bool(optimum.nit < max_iterations))
