"""Representational similarity analysis: whether two sets of features find the same images unlike."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64
from scipy.stats import rankdata

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.seeding import generator
from crossgraft.similarity._features import Features, Rows, Similarity, as_rows, not_finite

_MEASURE = "RSA"


def rsa(x: Features, y: Features, *, distance: str = "correlation", most_images: int = 5000, seed: int = 0) -> Similarity:
    """Spearman correlation of the distances of all pairs of images in X with those in Y.

    Args:
        x: (n, d_x), one row per image; an array, or a tensor on any device.
        y: (n, d_y), the same images, in the same order.
        distance: ``correlation``: 1 − Pearson correlation of the features of two images. ``euclidean``: their distance.
        most_images: Number of images that are drawn where there are more, the same on both sides.
        seed: Random seed of that draw.

    Returns:
        In [−1, 1]; ``n`` is the number of images that it is of, ``seed`` None where none were drawn.

    Raises:
        DataError: The numbers of rows differ, or a number is not finite.
        NotApplicable: Fewer than four images, all pairs are equally far, or an image has the same value in every feature, so that
            it has no correlation with others; the message says on which side.
        UsageError: There is no such distance, or fewer than four images are asked for.

    Cost: n² (d_x + d_y) operations and two sorts of n²/2 distances; 1 GB for 5 000 images.

    Reference:
        Kriegeskorte, Mur and Bandettini, Representational similarity analysis, Front. Syst. Neurosci. 2 (2008) 4.
    """
    if distance not in ("correlation", "euclidean"):
        raise UsageError(f"The distance of RSA is correlation or euclidean, got {distance!r}.")
    if most_images < 4:
        raise UsageError(f"RSA needs at least 4 images, most_images is {most_images}.")
    rows = as_rows(x, y, _MEASURE)
    n = len(rows[0])
    if n < 4:
        raise NotApplicable(f"{_MEASURE} needs at least 4 images, found {n}.")
    drawn = None if n <= most_images else np.sort(generator(seed, "rsa").choice(n, most_images, replace=False))
    ranks = [_ranks(side if drawn is None else side[drawn], distance, name) for side, name in zip(rows, ("x", "y"), strict=True)]
    value = float(ranks[0] @ ranks[1] / np.sqrt((ranks[0] @ ranks[0]) * (ranks[1] @ ranks[1])))
    return Similarity(
        min(max(value, -1.0), 1.0),
        estimator=f"rsa, {distance}",
        n=n if drawn is None else most_images,
        seed=None if drawn is None else seed,
    )


def _ranks(side: Rows, distance: str, name: str) -> Float64[np.ndarray, " num_pairs"]:
    """Centred ranks of the distances of all pairs."""
    if not np.isfinite(side).all():
        raise not_finite(name, _MEASURE)
    wide = side.astype(np.float64)
    if distance == "correlation":
        flat = np.flatnonzero(wide.max(axis=1) == wide.min(axis=1))
        if len(flat):
            raise NotApplicable(
                f"{len(flat)} of {len(wide)} images have the same value in every feature of {name} (the first in row {flat[0]}), "
                "so they correlate with nothing. Use distance='euclidean'."
            )
    apart = _apart(wide, distance)
    if np.ptp(apart) == 0:
        raise NotApplicable(f"All pairs of images are equally far in {name}, so {_MEASURE} has nothing to compare.")
    ranks = rankdata(apart)
    return ranks - (len(ranks) + 1) / 2


def _apart(side: Float64[np.ndarray, "num_images num_features"], distance: str) -> Float64[np.ndarray, " num_pairs"]:
    """Distances of all pairs, or numbers in the same order: 1 − correlation, or half of the squared distance."""
    side = side / max(float(np.abs(side).max()), np.finfo(np.float64).tiny)
    side = side - side.mean(axis=1 if distance == "correlation" else 0, keepdims=True)
    if distance == "correlation":
        side /= np.linalg.norm(side, axis=1, keepdims=True)
    products, pairs = side @ side.T, np.triu_indices(len(side), 1)
    half = np.diag(products) / 2
    # identical images are exactly equal, whatever rounding makes of them
    return np.round(half[pairs[0]] + half[pairs[1]] - products[pairs], 14)
