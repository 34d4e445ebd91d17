"""The k-nearest-neighbour probe: whether images of one class are near each other."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.sparse import csr_array

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.scores._inputs import Standardization
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.types import Features, Groups, Labels

Metric = Literal["euclidean", "cosine"]

_BLOCK_DISTANCES = 2**24
"""Distances held at a time."""
_MOST_CANDIDATES = 256
"""Rows with more candidates than this are not settled by exact differences."""
_EQUAL_DISTANCES = 1e-12
"""Relative difference below which two squared distances, computed in float64, are equal."""


@score(
    title="k-NN probe",
    reference="Cover and Hart, Nearest Neighbor Pattern Classification, IEEE Trans. Information Theory 1967; left out by group",
    is_reference_probe=True,
    invariances=("padding", "scale", "shift"),
    sees_reduced=False,
    warns_of=("a class of one image",),
    cost="O(n²·d); minutes above 50 000 images",
)
def knn_probe(
    features: Features,
    labels: Labels,
    groups: Groups | None = None,
    *,
    k: int = 5,
    metric: Metric = "euclidean",
    statistics: Statistics = SHARED,
) -> ScoreValue:
    """Accuracy of the k-nearest-neighbour rule, leaving out the image itself and all others of its group.

    Order of rows and names of classes never decide: all images as near as the k-th vote, and classes with equally many
    votes share the hit.

    Args:
        features: (n, d).
        labels: (n,).
        groups: The patient of each image; without it, only the image itself is left out.
        k: Neighbours that vote.
        metric: ``euclidean`` on standardised features, or ``cosine`` on the features as they are.
        statistics: Shared statistics of the same features and labels.

    Returns:
        In [0, 1]. ``parts`` holds the share of the largest class, which guessing reaches.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        NotApplicable: All images belong to one group.
        UsageError: A setting is out of range.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> knn_probe(features=X, labels=y)
        1.0
    """
    if k < 1:
        raise UsageError(f"`k` must be at least 1, got {k}.")
    left_out = np.arange(len(labels)) if groups is None else groups
    if (left_out == left_out[0]).all():
        raise NotApplicable("The k-NN probe needs images of at least two groups (patients).")
    key = ("neighbours", k, metric, left_out.tobytes())
    neighbours = statistics.label_free.remember(key, lambda: _neighbours(features, left_out, k, metric))
    votes: np.ndarray = neighbours @ np.eye(statistics.num_classes)[labels]
    is_winner = np.equal(votes, votes.max(axis=1)[:, None])
    hits = is_winner[np.arange(len(labels)), labels] / is_winner.sum(axis=1)
    majority = statistics.class_counts.max() / statistics.num_samples
    return ScoreValue(hits.mean(), parts={"majority_share": majority}, warnings=_warnings(labels, left_out))


def _warnings(labels: np.ndarray, left_out: np.ndarray) -> list[str]:
    """Classes that can never be hit, because all their images belong to one group."""
    pairs = np.unique(np.column_stack([labels, left_out]), axis=0)
    alone = int(np.sum(np.bincount(pairs[:, 0]) == 1))
    if not alone:
        return []
    return [f"{alone} of {labels.max() + 1} classes have images of one group only and are never recognised."]


def _neighbours(features: np.ndarray, left_out: np.ndarray, k: int, metric: Metric) -> csr_array:
    """Who votes for whom (n×n, ones): all rows of other groups as near as the k-th nearest of them."""
    points = _normalised_rows(features) if metric == "cosine" else Standardization.fit(features).apply(features)
    num_samples = len(points)
    squared_norms = np.einsum("ij,ij->i", points, points)
    # The matrix product rounds distances, so rows this close to the k-th are only candidates.
    resolution = 16 * np.finfo(points.dtype).eps * squared_norms.max()
    block = max(1, _BLOCK_DISTANCES // num_samples)
    rows: list[np.ndarray] = []
    columns: list[np.ndarray] = []
    for start in range(0, num_samples, block):
        stop = min(start + block, num_samples)
        distances = squared_norms - 2 * (points[start:stop] @ points.T) + squared_norms[start:stop, None]
        distances[left_out[start:stop, None] == left_out] = np.inf
        rank = min(k, num_samples) - 1
        kth = np.partition(distances, rank, axis=1)[:, rank, None]
        is_near = (distances <= kth + resolution) & np.isfinite(distances)
        for row in np.flatnonzero(is_near.sum(axis=1) > k):
            _settle(is_near[row], points, start + row, k)
        row, column = np.nonzero(is_near)
        rows.append(row + start)
        columns.append(column)
    ones = np.ones(sum(map(len, rows)))
    return csr_array((ones, (np.concatenate(rows), np.concatenate(columns))), shape=(num_samples, num_samples))


def _settle(is_near: np.ndarray, points: np.ndarray, row: np.intp, k: int) -> None:
    """Keep, in place, the candidates of one row that exact differences put no farther than the k-th.

    Many candidates are copies of one image, whose distances are equal anyway; they all keep their vote.
    """
    candidates = np.flatnonzero(is_near)
    if len(candidates) > _MOST_CANDIDATES:
        return
    differences = points[candidates].astype(np.float64) - points[row]
    distances = np.einsum("ij,ij->i", differences, differences)
    kth = np.partition(distances, k - 1)[k - 1]
    is_near[candidates] = distances <= kth * (1 + _EQUAL_DISTANCES)


def _normalised_rows(features: np.ndarray) -> np.ndarray:
    norms = np.sqrt(np.einsum("ij,ij->i", features, features))[:, None]
    return features / np.where(norms > 0, norms, 1)
