"""Features of several networks in one plane: principal components of their union (Figure 3 of RepSim)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Float64
from scipy import linalg, stats

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.geometry._inputs import finite_features
from crossgraft.geometry.record import FeatureMapRecord, MappedNetworkRow, TsneRow, drawn_cells, drawn_points
from crossgraft.seeding import derive_seed

Plane = Float64[np.ndarray, "num_images 2"]
GRID = 128
"""Points of the grid along each axis."""
_DRAWN_GRID = 48
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
    return np.linspace(low[0] - room[0], high[0] + room[0], GRID), np.linspace(low[1] - room[1], high[1] + room[1], GRID)


def density_on(
    points: Plane, xs: Float64[np.ndarray, " columns"], ys: Float64[np.ndarray, " rows"]
) -> Float64[np.ndarray, "rows columns"]:
    """Density at the crossings of a grid.

    Raises:
        NotApplicable: As ``kernel_density``, or the points lie so close together that all are between two crossings.
    """
    grid = np.stack([axis.ravel() for axis in np.meshgrid(xs, ys)])
    density = kernel_density(points)(grid).reshape(len(ys), len(xs))
    if not density.any():
        raise NotApplicable("the points lie so close together, beside the distance of both networks, that a grid misses them")
    return density


def overlap_of_densities(one: Plane, other: Plane) -> float:
    """∫ min(p, q) of two kernel densities, in [0, 1]; both are 1 in sum over the grid.

    Raises:
        NotApplicable: As ``density_on``.
    """
    xs, ys = grid_around(one, other)
    p, q = (density_on(points, xs, ys) for points in (one, other))
    return float(np.minimum(p / p.sum(), q / q.sum()).sum())


def bhattacharyya_of_gaussians(one: Float64[np.ndarray, "num_images d"], other: Float64[np.ndarray, "num_images d"]) -> float:
    """Bhattacharyya coefficient exp(−D) of the Gaussians of both sets, in [0, 1].

    D = ⅛ Δᵀ Σ⁻¹ Δ + ½ ln(|Σ| / √(|Σ₁| |Σ₂|)), Σ = (Σ₁ + Σ₂) / 2, with covariances shrunk by Ledoit and Wolf's rule, so that they
    have inverses where there are fewer images than features. In many dimensions it is nearly always 0.
    """
    from sklearn.covariance import ledoit_wolf

    first, second = (ledoit_wolf(features)[0] for features in (one, other))
    middle = linalg.cho_factor((first + second) / 2, lower=True)
    apart = one.mean(axis=0) - other.mean(axis=0)
    log_det = 2 * np.log(np.diag(middle[0])).sum()
    both = sum(np.linalg.slogdet(covariance)[1] for covariance in (first, second)) / 2
    distance = float(apart @ linalg.cho_solve(middle, apart)) / 8 + (log_det - both) / 2
    return float(np.exp(-max(distance, 0.0)))


Features = Float[np.ndarray, "num_images num_features"]
LARGEST_PERPLEXITY = 30.0
NUM_NEIGHBOURS = 5
"""Neighbours that trustworthiness looks at."""
FEWEST_POINTS = 12
"""Fewer images have no neighbourhoods to draw."""


@dataclass(frozen=True)
class TsneMap:
    """One network.

    Attributes:
        points: (n, 2) images in the plane; None where features do not vary.
        trustworthiness: Share of neighbours in the plane that are neighbours among features, in [0, 1].
        gap: Silhouette of two clusters of the features, in [−1, 1]: large where they fall into two groups.
        drawn_gap: The same in the plane: what an eye sees there.
        perplexity: Effective number of neighbours.
        reason: Reason why there is no map.
    """

    points: Float64[np.ndarray, "num_images 2"] | None
    trustworthiness: float | None
    gap: float | None
    drawn_gap: float | None
    perplexity: float
    reason: str | None = None


def tsne_row(name: str, found: TsneMap) -> TsneRow:
    """What is drawn and written of one network."""
    return TsneRow(
        network=name,
        points=[] if found.points is None else drawn_points(found.points),
        trustworthiness=found.trustworthiness,
        gap=found.gap,
        drawn_gap=found.drawn_gap,
        reason=found.reason,
    )


def tsne_maps(features: Mapping[str, Features], *, seed: int = 0) -> dict[str, TsneMap]:
    """Draw the images of one class as each network sees them, each network by itself.

    t-SNE makes gaps where there are none, and hides some, so that the gap is measured twice: as the silhouette of two clusters
    (2-means) among the features, and in the plane. Trustworthiness says how many of the nearest neighbours in the plane are real.
    Perplexity min(30, (n − 1) / 3), started from principal components, automatic learning rate.

    Args:
        features: Name → (n, d) features of the images of one class.
        seed: Random seed.

    Raises:
        DataError: Features are not finite, or there are fewer than 12 images.

    Cost: t-SNE is O(n log n) per iteration: about a second for 300 images.

    Source: Figure 4 of RepSim, which gives no settings and no numbers; trustworthiness: Venna and Kaski, ICANN 2001.
    """
    return {name: _map(name, rows, seed) for name, rows in features.items()}


def _map(name: str, features: Features, seed: int) -> TsneMap:
    from sklearn.manifold import TSNE, trustworthiness

    rows = finite_features(features, name).astype(np.float64)
    n = len(rows)
    if rows.shape[1] < 2:
        raise DataError(f"Features of {name} are single numbers, which no map is needed for.")
    if n < FEWEST_POINTS:
        raise DataError(f"{n} images of one class are too few for t-SNE; take a class with {FEWEST_POINTS} or more.")
    perplexity = min(LARGEST_PERPLEXITY, (n - 1) / 3)
    if len(np.unique(rows, axis=0)) < 3:
        return TsneMap(None, None, None, None, perplexity, f"{name} gives nearly all images the same features")
    points = TSNE(
        perplexity=perplexity, init="pca", learning_rate="auto", random_state=derive_seed(seed, "t-SNE"), n_jobs=1
    ).fit_transform(rows)
    points = points.astype(np.float64)
    return TsneMap(
        points,
        float(trustworthiness(rows, points, n_neighbors=min(NUM_NEIGHBOURS, n // 2 - 1))),
        _gap(rows, seed),
        _gap(points, seed),
        perplexity,
    )


def _gap(rows: Float64[np.ndarray, "num_images d"], seed: int) -> float:
    from sklearn.cluster import KMeans
    from sklearn.metrics import silhouette_score

    clusters = KMeans(2, n_init=10, random_state=derive_seed(seed, "2-means")).fit_predict(rows)  # pyright: ignore[reportArgumentType]
    return float(silhouette_score(rows, clusters))


_LEAST_RADIUS = 1e-12
"""Share of the length of the mean below which the spread of features is rounding."""


@dataclass(frozen=True)
class MappedFeatures:
    """One network on the map.

    Attributes:
        points: (n, 2) its images.
        distance: Distance of its centroid to that of the reference in the plane, in units of the features.
        relative_distance: The same in all dimensions, over the root mean square radius of the reference.
        overlap: Overlap of its density in the plane with that of the reference, in [0, 1]; None where it has none.
        bhattacharyya: Bhattacharyya coefficient with the reference in all dimensions; None where it was not asked for.
        reason: Reason why there is no overlap.
    """

    points: Plane
    distance: float
    relative_distance: float
    overlap: float | None
    bhattacharyya: float | None
    reason: str | None


@dataclass(frozen=True)
class FeatureMap:
    """All networks in the plane of the first two principal components of their union.

    Attributes:
        networks: Name → its images, in the order given.
        reference: Name of the network that others are compared with.
        shares: Share of the variance of the union along each axis.
    """

    networks: dict[str, MappedFeatures]
    reference: str
    shares: tuple[float, float]


def feature_map(features: Mapping[str, Features], *, reference: str | None = None, bhattacharyya: bool = False) -> FeatureMap:
    """Put the features of several networks into one plane, and say how far each lies from the reference.

    Components are fitted to all features together: with those of one network alone, others would project badly. The sign
    of each component is such that its largest weight is positive.

    Args:
        features: Name → (n, d) penultimate features, of the same images.
        reference: Name of the network to compare with, usually the pretrained one; the first where none is given.
        bhattacharyya: Compare Gaussians in all dimensions, too.

    Raises:
        UsageError: There are fewer than two networks, or the reference is none of them.
        DataError: Shapes differ, there are fewer than four images, or features are not finite.
        NotApplicable: The features of all networks are the same for all images, or those of the reference do not vary.

    Cost: an eigendecomposition of d × d, and densities at 128 × 128 places for each network.

    Source: Figure 3 of RepSim, which defines neither distance nor overlap.
    """
    names = list(features)
    reference = _checked(features, names, reference)
    rows = {name: np.asarray(matrix, dtype=np.float64) for name, matrix in features.items()}
    home = rows[reference]
    radius = float(np.sqrt(np.square(home - home.mean(axis=0)).sum(axis=1).mean()))
    if radius <= _LEAST_RADIUS * max(float(np.abs(home).max()), np.finfo(float).tiny):
        raise NotApplicable(f"the features of {reference} are the same for all images, so that nothing can be put beside them")
    mean, axes, shares = _components(np.concatenate(list(rows.values())))
    points = {name: (matrix - mean) @ axes for name, matrix in rows.items()}
    networks: dict[str, MappedFeatures] = {}
    for name in names:
        overlap, reason = _overlap(points[name], points[reference], name)
        networks[name] = MappedFeatures(
            points[name],
            float(np.linalg.norm(points[name].mean(axis=0) - points[reference].mean(axis=0))),
            float(np.linalg.norm(rows[name].mean(axis=0) - home.mean(axis=0))) / radius,
            overlap,
            bhattacharyya_of_gaussians(rows[name], home) if bhattacharyya else None,
            reason,
        )
    return FeatureMap(networks, reference, shares)


def feature_map_record(found: FeatureMap, *, images: str) -> FeatureMapRecord:
    """What is drawn and written: some points, and densities on one grid; ``images`` says what the images are."""
    axes = grid_around(*(mapped.points for mapped in found.networks.values()))
    xs, ys = (np.linspace(axis[0], axis[-1], _DRAWN_GRID) for axis in axes)
    rows: list[MappedNetworkRow] = []
    for name, mapped in found.networks.items():
        try:
            density = density_on(mapped.points, xs, ys)
            shares = drawn_cells(density / density.max())
        except NotApplicable:  # said beside the overlap, which has the same reason
            shares = None
        written: dict[str, Any] = {**vars(mapped), "points": drawn_points(mapped.points), "density": shares}
        rows.append(MappedNetworkRow(network=name, **written))
    return FeatureMapRecord(
        reference=found.reference,
        num_images=len(next(iter(found.networks.values())).points),
        images=images,
        shares=found.shares,
        x_range=(float(xs[0]), float(xs[-1])),
        y_range=(float(ys[0]), float(ys[-1])),
        networks=rows,
    )


def _checked(features: Mapping[str, Features], names: list[str], reference: str | None) -> str:
    if len(names) < 2:
        raise UsageError(f"A map compares two networks or more; there {'is one' if names else 'are none'}.")
    reference = names[0] if reference is None else reference
    if reference not in features:
        raise UsageError(f"The reference {reference} is none of the networks: {', '.join(names)}.")
    for name, matrix in features.items():
        finite_features(matrix, name)
        if matrix.shape != features[reference].shape:
            raise DataError(
                f"Features of {name} are {matrix.shape[0]}×{matrix.shape[1]}, those of {reference} "
                f"{features[reference].shape[0]}×{features[reference].shape[1]}; a common plane needs the same images and widths."
            )
    return reference


def _overlap(points: Plane, reference: Plane, name: str) -> tuple[float | None, str | None]:
    try:
        return min(overlap_of_densities(points, reference), 1.0), None
    except NotApplicable as error:
        return None, f"{name}: {error.reason}"


def _components(
    union: Float64[np.ndarray, "rows num_features"],
) -> tuple[Float64[np.ndarray, " num_features"], Float64[np.ndarray, "num_features 2"], tuple[float, float]]:
    """Mean, first two axes and their shares of the variance."""
    mean = union.mean(axis=0)
    centred = union - mean
    if union.shape[1] < 2:
        raise DataError("A plane needs features of two numbers or more.")
    width = union.shape[1]
    values, vectors = linalg.eigh(centred.T @ centred, subset_by_index=(width - 2, width - 1))
    axes = vectors[:, ::-1]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    total = float(np.square(centred).sum())
    return mean, axes, (max(float(values[1]) / total, 0.0), max(float(values[0]) / total, 0.0))
