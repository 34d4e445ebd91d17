"""PARC: whether images of one class resemble each other more than images of two classes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores._inputs import Standardization
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.types import Features, Labels

MOST_IMAGES = 20_000
"""Above, a stratified sample of this many images is looked at."""
_EXACT_IMAGES = 1000
"""Up to this many, products of float32 features are formed in float64, as ranks of few pairs show every rounding."""
_SORTED_PAIRS = 5e7
"""Up to this many distances are sorted; more of them are counted on a grid."""
_SORTED_DIGITS = 12
_GRID_CELLS = 2**22
_BLOCK_ROWS = 512


@score(
    title="PARC",
    reference="Bolya, Mittapalli and Hoffman, Scalable Diverse Model Selection for Accessible Transfer Learning, "
    "NeurIPS 2021, section 3.2",
    invariances=("scale", "shift"),
    no_value_for=("constant features", "one image per class"),
    cost="n²·d/2 products and a sort of n²/2 numbers, up to 20 000 images; again for each block that is left out",
    is_quadratic=True,
)
def parc(
    features: Features, labels: Labels, *, n_dims: int | None = None, seed: int = 0, statistics: Statistics = SHARED
) -> ScoreValue:
    """100 · Spearman correlation of image distances and label distances, over all pairs of images.

    The distance of two images is 1 − Pearson's correlation of their (column-wise standardised) features; that of their
    labels has two values, same class or not. So with midranks r of the image distances and the share p of same-class
    pairs, the correlation is (r̄_different − r̄_same) √(p(1−p)) / sd(r).

    Args:
        features: (n, d).
        labels: (n,).
        n_dims: Project onto this many principal components first; None looks at all features.
        seed: Random seed of the sample of 20 000 images, where there are more.
        statistics: Shared statistics of the same features and labels.

    Returns:
        In [−100, 100]; higher is better. NaN with a warning when all features are constant or there is only one. The
        published codes compute the label distances with rounding noise and rank that noise; their values differ for
        more than two classes.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: ``n_dims`` below 1.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.random.default_rng(0).normal(size=(40, 8)) + np.where(y[:, None], np.arange(8), 0)
        >>> parc(features=X, labels=y) > 10
        True
    """
    if n_dims is not None and n_dims < 1:
        raise UsageError(f"`n_dims` must be at least 1 principal component, or None, got {n_dims}.")
    label_free = statistics.label_free
    warnings = list(statistics.warnings)
    if label_free.is_constant:
        return ScoreValue(math.nan, warnings=(*warnings, "All features are constant, so no pair is closer than another."))
    points = label_free.features if n_dims is None else _components(label_free, n_dims)
    targets = statistics.targets
    if len(targets) > MOST_IMAGES:
        kept = _sample(targets, seed)
        points, targets = points[kept], targets[kept]
        warnings.append(f"Looked at a stratified sample of {len(kept)} of {statistics.num_samples} images.")
    if len(points) <= _EXACT_IMAGES:
        points = points.astype(np.float64, copy=False)
    pairs = _ranks(_unit_rows(points), targets)
    if pairs.num_same == 0 or pairs.num_same == pairs.num_pairs:
        return ScoreValue(math.nan, warnings=(*warnings, "No two images are of one class."))
    parts = {"pairs": pairs.num_pairs, "same_class_pairs": pairs.num_same}
    value = 100 * pairs.correlation()
    if math.isnan(value):
        warnings.append("All pairs are equally far apart, as with a single feature, so none is closer than another.")
    return ScoreValue(value, parts=parts, warnings=warnings)


def _components(label_free: FeatureStatistics, n_dims: int) -> np.ndarray:
    """Principal components, each with the sign that makes its largest loading positive.

    Pearson's correlation of two rows depends on these signs, so they must not be left to the eigensolver.
    """
    points = label_free.leading_scores(n_dims)
    centred = label_free.features - label_free.mean.astype(label_free.features.dtype)
    loadings = centred.T @ points.astype(centred.dtype)
    largest = loadings[np.abs(loadings).argmax(axis=0), np.arange(points.shape[1])]
    return points * np.where(largest < 0, -1.0, 1.0)


def _sample(targets: np.ndarray, seed: int) -> np.ndarray:
    """Rows of a sample that keeps the class shares, ascending; at least one per class."""
    share = MOST_IMAGES / len(targets)
    drawn = [
        seeding.generator(seed, "PARC", index).permutation(members)[: max(1, round(share * len(members)))]
        for index in range(int(targets.max()) + 1)
        if len(members := np.flatnonzero(targets == index))
    ]
    return np.sort(np.concatenate(drawn))


def _unit_rows(points: np.ndarray) -> np.ndarray:
    """Standardised by column, then centred and of length 1 by row: products are Pearson's correlations.

    A row without any spread correlates with nothing: its products are 0.
    """
    _, rows = Standardization.fit_apply(points)
    rows -= rows.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    resolution = 10 * np.finfo(rows.dtype).eps * math.sqrt(rows.shape[1])
    return np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > resolution)


class _Ranks(NamedTuple):
    """What the correlation needs of the midranks of all distances.

    Attributes:
        num_pairs: m.
        num_same: Pairs of one class.
        same_rank_sum: Sum of the ranks of the pairs of one class.
        tie_sum: Σ (t³ − t) over groups of t equal distances.
    """

    num_pairs: int
    num_same: int
    same_rank_sum: float
    tie_sum: float

    def correlation(self) -> float:
        """(r̄_different − r̄_same) √(p(1−p)) / sd(r)."""
        num_different = self.num_pairs - self.num_same
        rank_sum = self.num_pairs * (self.num_pairs + 1) / 2
        gap = (rank_sum - self.same_rank_sum) / num_different - self.same_rank_sum / self.num_same
        share = self.num_same / self.num_pairs
        variance = (self.num_pairs**2 - 1) / 12 - self.tie_sum / (12 * self.num_pairs)
        return gap * math.sqrt(share * (1 - share) / variance) if variance > 0 else math.nan


def _ranks(rows: np.ndarray, targets: np.ndarray) -> _Ranks:
    order = np.argsort(targets, kind="stable")  # classes in one piece, so that pairs of one class are blocks
    rows, targets = rows[order], targets[order]
    num_pairs = len(rows) * (len(rows) - 1) // 2
    if num_pairs <= _SORTED_PAIRS:
        return _ranks_by_sorting(rows, targets, num_pairs)
    return _ranks_on_a_grid(rows, targets, num_pairs)


def _distances(rows: np.ndarray, targets: np.ndarray) -> Iterator[tuple[np.ndarray, list[np.ndarray]]]:
    """Rounded distances of every pair i < j, in blocks, and those of one class among them; overwritten by the next block."""
    end_of_class = np.searchsorted(targets, targets, side="right")
    for start in range(0, len(rows), _BLOCK_ROWS):
        stop = min(start + _BLOCK_ROWS, len(rows))
        block = _rounded(rows[start:stop] @ rows[start:].T)
        pairs = [block[index, index + 1 :] for index in range(stop - start)]
        same = [row[: end_of_class[start + index] - (start + index + 1)] for index, row in enumerate(pairs)]
        yield np.concatenate(pairs), same


def _rounded(products: np.ndarray) -> np.ndarray:
    """Distances 1 − p, rounded so that equal pairs are equal: float64 to 12 digits, float32 to 2⁻²¹, about its rounding.

    The latter in units of 2⁻²¹, which float32 holds exactly; ``products`` are overwritten.
    """
    if products.dtype == np.float64:
        return np.round(np.subtract(1, products, out=products), _SORTED_DIGITS, out=products)
    half = products.dtype.type(_GRID_CELLS / 2)
    products *= -half
    products += half
    np.rint(products, out=products)
    return np.clip(products, 0, _GRID_CELLS, out=products)


def _ranks_by_sorting(rows: np.ndarray, targets: np.ndarray, num_pairs: int) -> _Ranks:
    """Exact midranks of the rounded distances. Cost one sort."""
    distances = np.empty(num_pairs, dtype=rows.dtype)
    same_class: list[np.ndarray] = []
    filled = 0
    for block, same in _distances(rows, targets):
        distances[filled : filled + len(block)] = block
        filled += len(block)
        same_class.append(np.concatenate(same))
    distances.sort()
    same_distances = np.sort(np.concatenate(same_class))
    below = np.searchsorted(distances, same_distances, side="left")
    up_to = np.searchsorted(distances, same_distances, side="right")
    last_of_tie = np.append(np.flatnonzero(distances[1:] != distances[:-1]), num_pairs - 1)
    ties = np.diff(last_of_tie, prepend=-1).astype(np.float64)
    return _Ranks(
        num_pairs=num_pairs,
        num_same=len(same_distances),
        same_rank_sum=float(below.sum() + up_to.sum() + len(same_distances)) / 2,
        tie_sum=float((ties**3 - ties).sum()),
    )


def _ranks_on_a_grid(rows: np.ndarray, targets: np.ndarray, num_pairs: int) -> _Ranks:
    """The same for distances in units of 2⁻²¹; memory does not grow with the pairs."""
    counts = np.zeros(_GRID_CELLS + 1, dtype=np.int64)
    same_counts = np.zeros(_GRID_CELLS + 1, dtype=np.int64)
    for block, same in _distances(rows, targets):
        counts += _counts(block)
        same_counts += _counts(np.concatenate(same))
    midranks = np.cumsum(counts) - (counts - 1) / 2
    ties = counts.astype(np.float64)
    return _Ranks(num_pairs, int(same_counts.sum()), float(same_counts @ midranks), float((ties**3 - ties).sum()))


def _counts(distances: np.ndarray) -> np.ndarray:
    """How many distances lie in each cell of the grid."""
    if distances.dtype == np.float64:  # those of float32 are whole numbers of cells already
        distances = np.clip(np.rint(distances * (_GRID_CELLS / 2)), 0, _GRID_CELLS)
    return np.bincount(distances.astype(np.intp), minlength=_GRID_CELLS + 1)
