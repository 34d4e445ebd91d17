"""Densities of points in a plane, and how far two of them overlap."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy import linalg, stats

from crossgraft.errors import NotApplicable

Plane = Float64[np.ndarray, "num_images 2"]
GRID = 128
"""Points of the grid along each axis."""
_MARGIN = 0.25
"""Share of the span that the grid goes on beyond the outermost points, on either side: densities reach further than points."""
_LEAST_SHARE = 1e-10
"""Share of the larger variance below which points lie on a line."""


def kernel_density(points: Plane) -> stats.gaussian_kde:
    """Gaussian kernels of Scott's width.

    Raises:
        NotApplicable: The points lie on a line, or in one place, where there is no density of the plane.
    """
    low, high = np.linalg.eigvalsh(np.cov(points.T))
    if high <= 0 or low <= _LEAST_SHARE * high:
        raise NotApplicable("the points lie on a line or in one place, so that they have no density in the plane")
    return stats.gaussian_kde(points.T, bw_method="scott")


def grid_around(*clouds: Plane) -> tuple[Float64[np.ndarray, " columns"], Float64[np.ndarray, " rows"]]:
    """Places of the grid along both axes, with all points and room around them."""
    points = np.concatenate(clouds)
    low, high = points.min(axis=0), points.max(axis=0)
    room = _MARGIN * (high - low)
    return np.linspace(low[0] - room[0], high[0] + room[0], GRID), np.linspace(
        low[1] - room[1], high[1] + room[1], GRID
    )


def density_on(
    points: Plane, xs: Float64[np.ndarray, " columns"], ys: Float64[np.ndarray, " rows"]
) -> Float64[np.ndarray, "rows columns"]:
    """Density at the crossings of a grid.

    Raises:
        NotApplicable: As ``kernel_density``.
    """
    places = np.stack([axis.ravel() for axis in np.meshgrid(xs, ys)])
    return kernel_density(points)(places).reshape(len(ys), len(xs))


def overlap_of_densities(one: Plane, other: Plane) -> float:
    """∫ min(p, q) of two kernel densities, in [0, 1]; both are 1 in sum over the grid.

    Raises:
        NotApplicable: As ``kernel_density``.
    """
    xs, ys = grid_around(one, other)
    p, q = (density_on(points, xs, ys) for points in (one, other))
    return float(np.minimum(p / p.sum(), q / q.sum()).sum())


def bhattacharyya_of_gaussians(
    one: Float64[np.ndarray, "num_images d"], other: Float64[np.ndarray, "num_images d"]
) -> float:
    """Bhattacharyya coefficient exp(−D) of the Gaussians of both sets, in [0, 1].

    D = ⅛ Δᵀ Σ⁻¹ Δ + ½ ln(|Σ| / √(|Σ₁| |Σ₂|)), Σ = (Σ₁ + Σ₂) / 2, with covariances shrunk by Ledoit and Wolf's rule, so that they
    have inverses where there are fewer images than features. In many dimensions it is nearly always 0.
    """
    from sklearn.covariance import ledoit_wolf

    first, second = (ledoit_wolf(each)[0] for each in (one, other))
    middle = linalg.cho_factor((first + second) / 2, lower=True)
    apart = one.mean(axis=0) - other.mean(axis=0)
    log_det = 2 * np.log(np.diag(middle[0])).sum()
    both = sum(np.linalg.slogdet(each)[1] for each in (first, second)) / 2
    distance = float(apart @ linalg.cho_solve(middle, apart)) / 8 + (log_det - both) / 2
    return float(np.exp(-max(distance, 0.0)))
