"""Features of several networks in one plane: principal components of their union (Figure 3 of RepSim)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64
from scipy import linalg

from crossgraft.errors import DataError, NotApplicable, UsageError
from crossgraft.geometry._density import bhattacharyya_of_gaussians, overlap_of_densities
from crossgraft.geometry._inputs import finite_features

Features = Float[np.ndarray, "num_images num_features"]
Plane = Float64[np.ndarray, "num_images 2"]
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


def feature_map(
    features: Mapping[str, Features], *, reference: str | None = None, bhattacharyya: bool = False
) -> FeatureMap:
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
    rows = {name: np.asarray(each, dtype=np.float64) for name, each in features.items()}
    home = rows[reference]
    radius = _radius(home)
    if radius <= _LEAST_RADIUS * max(float(np.abs(home).max()), np.finfo(float).tiny):
        raise NotApplicable(
            f"the features of {reference} are the same for all images, so that nothing can be put beside them"
        )
    mean, axes, shares = _components(np.concatenate(list(rows.values())))
    points = {name: (each - mean) @ axes for name, each in rows.items()}
    found: dict[str, MappedFeatures] = {}
    for name in names:
        overlap, reason = _overlap(points[name], points[reference], name)
        found[name] = MappedFeatures(
            points[name],
            float(np.linalg.norm(points[name].mean(axis=0) - points[reference].mean(axis=0))),
            float(np.linalg.norm(rows[name].mean(axis=0) - home.mean(axis=0))) / radius,
            overlap,
            bhattacharyya_of_gaussians(rows[name], home) if bhattacharyya else None,
            reason,
        )
    return FeatureMap(found, reference, shares)


def _checked(features: Mapping[str, Features], names: list[str], reference: str | None) -> str:
    if len(names) < 2:
        raise UsageError(f"A map compares two networks or more; there {'is one' if names else 'are none'}.")
    reference = names[0] if reference is None else reference
    if reference not in features:
        raise UsageError(f"The reference {reference} is none of the networks: {', '.join(names)}.")
    for name, each in features.items():
        finite_features(each, name)
        if each.shape != features[reference].shape:
            raise DataError(
                f"Features of {name} are {each.shape[0]}×{each.shape[1]}, those of {reference} "
                f"{features[reference].shape[0]}×{features[reference].shape[1]}; a common plane needs the same images and widths."
            )
    return reference


def _overlap(points: Plane, reference: Plane, name: str) -> tuple[float | None, str | None]:
    try:
        return overlap_of_densities(points, reference), None
    except NotApplicable as error:
        return None, f"{name}: {error.reason}"


def _radius(rows: Float64[np.ndarray, "num_images num_features"]) -> float:
    """Root mean square distance to the centroid."""
    return float(np.sqrt(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean()))


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
