"""The k-nearest-neighbour probe: whether images of one class are near each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from crossgraft.errors import NotApplicable, UsageError
from crossgraft.scores._inputs import Standardization
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.types import Features, Groups, Labels

Metric = Literal["euclidean", "cosine"]

_BLOCK_DISTANCES = 2**24
"""Distances held at a time."""
_MOST_CANDIDATES = 256
"""Rows with more candidates than this are not settled by exact differences."""
_EQUAL_DISTANCES = 1e-12
"""Relative difference below which two squared distances, computed in float64, are equal."""
_LISTED, _LISTED_A_VOTE = 64, 8
"""Nearest rows that are listed for each row: at least so many, and so many for each neighbour that votes."""
_ROUNDING = 1e-5
"""More than standardising in float32 changes a squared distance by, relative to it."""
_DISTANCES_A_PAIR = 16
"""Distances of all pairs, by one product, that cost as much as the distance of one pair by itself."""
_BUNDLE, _BUNDLES_A_VALUE = 16, 4
"""Columns whose minimum is looked at in a search, and how many such bundles for each value looked for make that worth while."""
_PAIRS = 512
"""Pairs of rows whose features are held at a time, in the cache of the processor."""


@score(
    title="k-NN probe",
    reference="Cover and Hart, Nearest Neighbor Pattern Classification, IEEE Trans. Information Theory 1967; left out by group",
    is_reference_probe=True,
    invariances=("padding", "scale", "shift"),
    sees_reduced=False,
    warns_of=("a class of one image",),
    cost="O(n²·d) once, and little for each block that is left out; minutes above 50 000 images",
    is_quadratic=True,
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
    neighbours = statistics.label_free.remember(key, lambda: _neighbours(features, left_out, k, metric, statistics.label_free))
    hits = _hits(neighbours, labels, statistics.num_classes)
    majority = statistics.class_counts.max() / statistics.num_samples
    return ScoreValue(hits.mean(), parts={"majority_share": majority}, warnings=_warnings(labels, left_out))


def _hits(neighbours: csr_array, labels: np.ndarray, num_classes: int) -> np.ndarray:
    """1 where the own class has most votes, a share of it where others have as many, else 0. Every row has a neighbour."""
    images = np.arange(len(labels))
    own = csr_array((np.ones(len(labels)), (images, labels)), shape=(len(labels), num_classes))
    votes = csr_array(neighbours @ own)  # what is not stored is no vote: with many classes nearly all
    first, of = votes.indptr[:-1], np.repeat(images, np.diff(votes.indptr))
    is_winner = votes.data == np.maximum.reduceat(votes.data, first)[of]
    hits = np.zeros(len(labels))
    hits[of[is_winner & (votes.indices == labels[of])]] = 1
    return hits / np.add.reduceat(is_winner, first, dtype=np.intp)


def _warnings(labels: np.ndarray, left_out: np.ndarray) -> list[str]:
    """Classes that can never be hit, because all their images belong to one group."""
    pairs = np.unique(np.column_stack([labels, left_out]), axis=0)
    alone = int(np.sum(np.bincount(pairs[:, 0]) == 1))
    if not alone:
        return []
    return [f"{alone} of {labels.max() + 1} classes have images of one group only and are never recognised."]


def _neighbours(features: np.ndarray, left_out: np.ndarray, k: int, metric: Metric, shared: FeatureStatistics) -> csr_array:
    """Who votes for whom (n×n, ones): all rows of other groups as near as the k-th nearest of them."""
    rows = _Points.of(features, left_out, metric)
    key = ("near rows", k, metric)
    earlier = None if shared.origin is None else shared.origin.parent.recall(key, _Search)
    near = None if earlier is None or shared.origin is None else earlier.without(shared.origin.kept, features, rows, k)
    if near is None:
        near = rows.list_near(max(_LISTED, _LISTED_A_VOTE * k))
        search = _Search(near, left_out, rows.scale, rows.resolution)
        shared.remember(key, lambda: search)
    return _votes(rows, near, k)


class _Near(NamedTuple):
    """The nearest rows of other groups of every row, in any order.

    Attributes:
        columns: (n, listed) row numbers.
        distances: (n, listed) squared distances; +inf: the row is of the same group, left out or too far.
        beyond: (n,) every row of another group that is not listed is at least as far; +inf where there is none.
    """

    columns: np.ndarray
    distances: np.ndarray
    beyond: np.ndarray


class _Points(NamedTuple):
    """Features as distances are measured between them.

    Attributes:
        points: (n, d).
        squared_norms: (n,).
        by_group: The rows in the order of their groups.
        groups: The group of each of these.
        left_out: Group of each row.
        scale: Scale of each feature; None: rows have length 1 instead.
        resolution: A squared distance is rounded by less, because it is made of norms and a product; and equal ones, of at most
            4 squared norms, differ by less.
    """

    points: np.ndarray
    squared_norms: np.ndarray
    by_group: np.ndarray
    groups: np.ndarray
    left_out: np.ndarray
    scale: np.ndarray | None
    resolution: float

    @classmethod
    def of(cls, features: np.ndarray, left_out: np.ndarray, metric: Metric) -> _Points:
        """Standardised features, or rows of length 1."""
        if metric == "cosine":
            scale, points = None, _normalised_rows(features)
        else:
            standardization, points = Standardization.fit_apply(features)
            scale = standardization.scale
        squared_norms = np.einsum("ij,ij->i", points, points)
        resolution = float((16 * np.finfo(points.dtype).eps + 4 * _EQUAL_DISTANCES) * squared_norms.max())
        by_group = np.argsort(left_out, kind="stable")
        return cls(points, squared_norms, by_group, left_out[by_group], left_out, scale, resolution)

    def to_all(self, rows: np.ndarray) -> np.ndarray:
        """(rows, n) squared distances; +inf to the own group."""
        distances = (-2 * self.points[rows]) @ self.points.T
        distances += self.squared_norms
        distances += self.squared_norms[rows, None]
        first, last = (np.searchsorted(self.groups, self.left_out[rows], side) for side in ("left", "right"))
        for place, (start, stop) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            distances[place, self.by_group[start:stop]] = np.inf
        return distances

    def between(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Squared distance of each row from the row of the other list in the same place."""
        products = np.empty(len(rows), dtype=self.points.dtype)
        for start in range(0, len(rows), _PAIRS):
            some = slice(start, start + _PAIRS)
            products[some] = np.einsum("ij,ij->i", self.points[rows[some]], self.points[columns[some]])
        return self.squared_norms[rows] - 2 * products + self.squared_norms[columns]

    def list_near(self, num_listed: int) -> _Near:
        """Search all rows, whatever their number."""
        num_rows = len(self.points)
        num_listed = min(num_listed, num_rows)
        columns = np.empty((num_rows, num_listed), dtype=np.intp)
        distances = np.empty((num_rows, num_listed), dtype=self.points.dtype)
        for rows in self.blocks(np.arange(num_rows)):
            to_all = self.to_all(rows)
            columns[rows] = _places_of_smallest(to_all, num_listed)
            distances[rows] = np.take_along_axis(to_all, columns[rows], axis=1)
        return _Near(columns, distances, distances.max(axis=1) if num_listed < num_rows else np.full(num_rows, np.inf))

    def blocks(self, rows: np.ndarray) -> Iterator[np.ndarray]:
        """As many rows at a time as distances to all rows may be held of."""
        size = max(1, _BLOCK_DISTANCES // len(self.points))
        return (rows[start : start + size] for start in range(0, len(rows), size))


class _Search(NamedTuple):
    """What a search leaves for the same rows without some of them."""

    near: _Near
    left_out: np.ndarray
    scale: np.ndarray | None
    resolution: float

    def without(self, kept: np.ndarray, features: np.ndarray, rows: _Points, k: int) -> _Near | None:
        """The listed rows that are still there, where they can be among the k nearest by the distances of ``rows``.

        Leaving rows out changes the scale of each feature. So a squared distance is at least ``least`` of what it was less
        ``gone``, and the k rows that were nearest, measured again, say how far the k nearest are at most. None where that says
        nothing, where the groups are others, and where a new search costs less than measuring the listed rows again, as with few
        images.

        Args:
            kept: The rows that are left, ascending.
            features: Their features, as they came.
            rows: The same as distances are measured between them now.
            k: Neighbours that vote.
        """
        shrinking = self._shrinking(features, rows.scale)
        if shrinking is None or not _same_groups(self.left_out[kept], rows.left_out):
            return None
        least, gone = shrinking

        def at_least(before: np.ndarray) -> np.ndarray:
            return least * (before - self.resolution - gone) - 2 * rows.resolution

        place = np.full(len(self.left_out), -1)
        place[kept] = np.arange(len(kept))
        columns = place[self.near.columns[kept]]
        before = np.where(columns < 0, np.inf, self.near.distances[kept])
        distances = np.full_like(before, np.inf)
        were_nearest = np.isfinite(before) & (before <= _kth(before, k)[:, None])
        may_be = were_nearest
        for _ in range(2):  # first the k that were nearest, then all that may be as near as these are now
            of, places = np.nonzero(may_be & np.isposinf(distances))
            if len(of) * _DISTANCES_A_PAIR > len(kept) ** 2:
                return None
            distances[of, places] = rows.between(of, columns[of, places])
            farthest = _kth(distances, k) + 2 * rows.resolution
            may_be = np.isfinite(before) & (at_least(before) <= farthest[:, None])
        return _Near(columns, distances, at_least(self.near.beyond[kept]))

    def _shrinking(self, features: np.ndarray, scale: np.ndarray | None) -> tuple[float, float] | None:
        """The least that a squared scale is multiplied by, and the most that features which vary no more gave a distance.

        None where no feature varies before and after.
        """
        if self.scale is None or scale is None:
            return 1.0, 0.0
        varies = (self.scale > 0) & (scale > 0)
        if not varies.any():
            return None
        growth = np.square(scale[varies].astype(np.float64) / self.scale[varies])
        ceased = (self.scale > 0) & (scale == 0)
        ranges = np.ptp(features[:, ceased], axis=0) * self.scale[ceased].astype(np.float64)
        return float(growth.min()) * (1 - _ROUNDING), float(np.square(ranges).sum()) * (1 + _ROUNDING)


def _places_of_smallest(values: np.ndarray, number: int) -> np.ndarray:
    """(rows, number) columns of the smallest values of each row, in any order.

    As many bundles of columns as values are asked for, those with the smallest minima, hold them all: a bundle with a smaller
    minimum than one that holds such a value holds one too. So few columns are partitioned. Cost a third of ``argpartition``.
    """
    num_bundles = values.shape[1] // _BUNDLE
    if num_bundles < _BUNDLES_A_VALUE * number:
        return np.argpartition(values, number - 1, axis=1)[:, :number]
    bundled = num_bundles * _BUNDLE  # of a bundle are the columns with one remainder; the last columns are of none
    least = values[:, :bundled].reshape(len(values), _BUNDLE, num_bundles).min(axis=1)
    bundles = np.argpartition(least, number - 1, axis=1)[:, :number]
    columns = (bundles[:, None] + num_bundles * np.arange(_BUNDLE)[:, None]).reshape(len(values), -1)
    columns = np.concatenate([columns, np.tile(np.arange(bundled, values.shape[1]), (len(values), 1))], axis=1)
    places = np.argpartition(np.take_along_axis(values, columns, axis=1), number - 1, axis=1)[:, :number]
    return np.take_along_axis(columns, places, axis=1)


def _same_groups(some: np.ndarray, others: np.ndarray) -> bool:
    """Whether both divide the rows alike, whatever the groups are called."""
    first, second = (np.unique(groups, return_index=True, return_inverse=True)[1:] for groups in (some, others))
    return bool(np.array_equal(first[0][first[1]], second[0][second[1]]))


def _kth(distances: np.ndarray, k: int) -> np.ndarray:
    """The k-th smallest of each row, or the largest of fewer."""
    rank = min(k, distances.shape[1]) - 1
    return np.partition(distances, rank, axis=1)[:, rank]


def _votes(rows: _Points, near: _Near, k: int) -> csr_array:
    """All rows as near as the k-th nearest; a row whose list may lack one is searched whole."""
    holds_all = np.isposinf(near.beyond) | (near.beyond > _kth(near.distances, k) + rows.resolution)
    listed = np.flatnonzero(holds_all)
    of, places = _as_near_as_kth(near.distances[listed], k, rows.resolution)
    pairs = [(listed[of], near.columns[listed[of], places])]
    for some in rows.blocks(np.flatnonzero(~holds_all)):
        of, columns = _as_near_as_kth(rows.to_all(some), k, rows.resolution)
        pairs.append((some[of], columns))
    settled = [_settle(rows.points, *pair, k) for pair in pairs]
    of, columns = (np.concatenate(parts) for parts in zip(*settled, strict=True))
    return csr_array((np.ones(len(of)), (of, columns)), shape=(len(rows.points), len(rows.points)))


def _as_near_as_kth(distances: np.ndarray, k: int, resolution: float) -> tuple[np.ndarray, np.ndarray]:
    """Row and place of every distance that may be as small as the k-th of its row."""
    rows, places = np.nonzero((distances <= _kth(distances, k)[:, None] + resolution) & np.isfinite(distances))
    return rows, places


def _settle(points: np.ndarray, rows: np.ndarray, columns: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Keep, where a row has more than k candidates, those that exact differences put no farther than the k-th.

    Many candidates are copies of one image, whose distances are equal anyway; they all keep their vote.
    """
    is_near = np.ones(len(rows), dtype=bool)
    of, first, number = np.unique(rows, return_index=True, return_counts=True)
    for place in np.flatnonzero((number > k) & (number <= _MOST_CANDIDATES)):
        some = slice(first[place], first[place] + number[place])
        differences = points[columns[some]].astype(np.float64) - points[of[place]]
        distances = np.einsum("ij,ij->i", differences, differences)
        is_near[some] = distances <= np.partition(distances, k - 1)[k - 1] * (1 + _EQUAL_DISTANCES)
    return rows[is_near], columns[is_near]


def _normalised_rows(features: np.ndarray) -> np.ndarray:
    norms = np.sqrt(np.einsum("ij,ij->i", features, features))[:, None]
    return features / np.where(norms > 0, norms, 1)
