"""Features of one class as t-SNE draws them, with numbers that say whether the picture can be trusted (Figure 4 of RepSim)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float64

from crossgraft.errors import DataError
from crossgraft.geometry._inputs import finite_features
from crossgraft.seeding import derive_seed

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
    return {name: _map(name, each, seed) for name, each in features.items()}


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
        perplexity=perplexity,
        init="pca",
        learning_rate="auto",
        random_state=derive_seed(seed, "t-SNE"),
        n_jobs=1,
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
