"""LEAD (experimental): logits that move to the labels at a speed that a random head's tangent kernel gives each class."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np
from jaxtyping import Float, Float64
from scipy.special import expit

from crossgraft import seeding
from crossgraft.errors import UsageError
from crossgraft.scores._lda import posterior_of
from crossgraft.scores._linear_maps import Loss, fit_linear_map
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, FeatureStatistics, Statistics
from crossgraft.types import ClassIndices, Features, Labels

_HIDDEN = (1024, 2048)
"""Width of the random head's hidden layers."""
_IMAGES_A_CLASS = 64
"""Images of a class whose gradients are looked at."""
_IMAGES_AT_ONCE = 512
"""In one product through the random head; small products are slow."""
_NUM_FOLDS = 3
_MAX_ITERATIONS = 100
_SVM_TOLERANCE = 1e-4
"""Tolerance for float32 gradients; calibration absorbs the remaining error."""
_NEWTON_STEPS = 30
_SMALLEST_PROBABILITY = 1e-12


@score(
    title="LEAD (experimental)",
    reference="Hu et al., LEAD: Exploring Logit Space Evolution for Model Selection, CVPR 2024; from second-hand "
    "descriptions, no published code",
    is_seeded=True,
    invariances=("scale",),
    cost="one eigendecomposition and O(64·C·(1024·d + 1024·2048)); with SVMs four fits of O(n·d·C) per step",
)
def lead(
    features: Features,
    labels: Labels,
    *,
    initial: Literal["ridge", "svm"] = "ridge",
    rate: float = 1.0,
    time: float = 1.0,
    seed: int = 0,
    statistics: Statistics = SHARED,
) -> ScoreValue:
    """Mean log F_t(y_i | x_i), with F_t = (1 − e^{−ηλ̄t}) · one-hot + e^{−ηλ̄t} · F_0 for an image of a class of speed λ̄.

    F_0 are the class probabilities of linear one-vs-rest classifiers on the features. λ̄_k is the mean eigenvalue of the
    empirical tangent kernel on 64 images of class k: of a random head with 1024 and 2048 hidden ReLU units, the mean
    squared length of the gradient of the summed logits, divided by its mean over the classes.

    The published text leaves η and the scale of λ̄ open; as resolved here, no value is comparable with published ones.

    Args:
        features: (n, d); divided by one number, so that their scale does not matter.
        labels: (n,).
        initial: ``ridge``: F_0 is the softmax of ridge regressions onto ±1, in closed form; ``svm``: F_0 are linear SVMs
            (squared hinge) calibrated by Platt's sigmoid on three folds, normalised to sum 1, as in the paper.
        rate: η > 0.
        time: t > 0.
        seed: Random seed of the head, the images and the folds.
        statistics: Shared statistics of the same features and labels.

    Returns:
        At most 0; higher is better. ``parts`` hold the value for t = 0 and the slowest and fastest class.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: Unknown ``initial``, or a setting that is not positive.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> lead(features=X, labels=y) > lead(features=X[:, 1:], labels=y)
        True
    """
    if not (rate > 0 and time > 0):
        raise UsageError(f"`rate` and `time` must be positive, got {rate} and {time}.")
    label_free = statistics.label_free
    unit = _unit(label_free)
    points = label_free.all_scores() / unit
    if initial == "ridge":
        start = posterior_of(_ridge_scores(points, statistics))
    else:
        start = _calibrated_svms(points, labels, seeding.generator(seed, "LEAD folds"))
    speeds = _speeds(label_free.features, unit, labels, seed)
    own_start = start[np.arange(len(labels)), labels]
    remaining = np.exp(-rate * time * speeds)[labels]
    own = (1 - remaining) + remaining * own_start  # the one-hot term is 1 for the own class
    parts = {
        "start": np.mean(np.log(np.maximum(own_start, _SMALLEST_PROBABILITY))),
        "slowest_class": speeds.min(),
        "fastest_class": speeds.max(),
    }
    return ScoreValue(float(np.mean(np.log(own))), parts=parts, warnings=statistics.warnings)


def _unit(label_free: FeatureStatistics) -> float:
    """Root mean variance of a feature; 1 where nothing varies."""
    if label_free.is_constant:
        return 1.0
    return float(np.sqrt(label_free.squared_norms.sum() / label_free.features.size))


def _ridge_scores(points: np.ndarray, statistics: Statistics) -> np.ndarray:
    """Ridge regressions onto +1 for the class and −1 for the rest, penalty ‖w‖², bias free; columns are uncorrelated."""
    counts = statistics.class_counts
    mean_target = 2 * counts / statistics.num_samples - 1
    products = 2 * statistics.class_sums(points).T  # the points are centred, so −1 of the rest cancels
    weight = products / (np.einsum("ij,ij->j", points, points) + 1)[:, None]
    return points @ weight + mean_target


def _calibrated_svms(points: np.ndarray, labels: ClassIndices, rng: np.random.Generator) -> np.ndarray:
    """Class probabilities (n, C): one SVM a class on all images, its sigmoid from margins on images not seen."""
    signs = np.where(labels[:, None] == np.arange(int(labels.max()) + 1), 1.0, -1.0)
    margins = _svm(points, signs, points)
    folds = _folds(labels, rng)
    unseen = np.empty_like(margins)
    for fold in range(_NUM_FOLDS):
        inside = folds != fold
        unseen[~inside] = _svm(points[inside], signs[inside], points[~inside]) if inside.any() else 0.0
    slope, offset = _platt(unseen, signs)
    is_small = np.bincount(labels) < _NUM_FOLDS  # too few to calibrate: the margin speaks for itself
    probabilities = expit(np.where(is_small, margins, slope * margins + offset)) + _SMALLEST_PROBABILITY
    return probabilities / probabilities.sum(axis=1, keepdims=True)


def _folds(labels: ClassIndices, rng: np.random.Generator) -> np.ndarray:
    """A fold for each image, every class spread evenly."""
    order = rng.permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(len(labels), dtype=np.intp)
    folds[by_class] = np.arange(len(labels)) % _NUM_FOLDS
    return folds


def _svm(points: np.ndarray, signs: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """Margins of ``asked`` under ½‖w‖² + Σ max(0, 1 − t f)², one SVM a column of ``signs``."""
    centre = points.mean(axis=0)
    single = (points - centre).astype(np.float32)
    fit = fit_linear_map(
        single,
        _squared_hinge(signs.astype(np.float32)),
        num_outputs=signs.shape[1],
        penalty=1 / len(points),
        curvature=2.0,
        max_iterations=_MAX_ITERATIONS,
        tolerance=_SVM_TOLERANCE,
    )
    return fit.scores(queries - centre)


def _squared_hinge(signs: np.ndarray) -> Loss:
    def loss(scores: np.ndarray) -> tuple[float, np.ndarray]:
        short = np.maximum(1 - signs * scores, 0)
        return float(np.square(short).sum(dtype=np.float64)) / len(signs), -2 / len(signs) * signs * short

    return loss


def _platt(margins: np.ndarray, signs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of each column's sigmoid, by Newton's method on Platt's smoothed targets."""
    positives = (signs > 0).sum(axis=0)
    negatives = len(signs) - positives
    targets = np.where(signs > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    slope, offset = np.zeros(margins.shape[1]), np.log((positives + 1) / (negatives + 1))
    for _ in range(_NEWTON_STEPS):
        probability = expit(slope * margins + offset)
        error, curvature = probability - targets, probability * (1 - probability) + 1e-9
        moment = (curvature * margins).sum(axis=0)
        diagonal = (curvature * margins**2).sum(axis=0) + 1e-6, curvature.sum(axis=0) + 1e-6
        by_slope, by_offset = (error * margins).sum(axis=0) + 1e-6 * slope, error.sum(axis=0)
        determinant = diagonal[0] * diagonal[1] - moment**2
        slope = slope - np.clip((diagonal[1] * by_slope - moment * by_offset) / determinant, -2, 2)
        offset = offset - np.clip((diagonal[0] * by_offset - moment * by_slope) / determinant, -2, 2)
    return slope, offset


def _speeds(
    features: Float[np.ndarray, "num_samples num_features"], unit: float, labels: ClassIndices, seed: int
) -> Float64[np.ndarray, " num_classes"]:
    """λ̄_k over its mean: the trace of the tangent kernel on images of class k, over their number."""
    head = _random_head(features.shape[1], int(labels.max()) + 1, seed)
    rng = seeding.generator(seed, "LEAD images")
    chosen = [rng.permutation(np.flatnonzero(labels == index))[:_IMAGES_A_CLASS] for index in range(head.num_classes)]
    rows = np.concatenate(chosen)
    lengths = np.concatenate(
        [
            head.squared_gradients(features[rows[start : start + _IMAGES_AT_ONCE]].astype(np.float32) / np.float32(unit))
            for start in range(0, len(rows), _IMAGES_AT_ONCE)
        ]
    )
    traces = np.bincount(labels[rows], weights=lengths) / [len(of_class) for of_class in chosen]
    mean = float(np.mean(traces))
    return traces / mean if mean > 0 else np.ones(head.num_classes)


@lru_cache(maxsize=1)
def _random_head(num_features: int, num_classes: int, seed: int) -> _RandomHead:
    """The last one is kept, since interval and control ask for the same one 26 times."""
    return _RandomHead(num_features, num_classes, seeding.generator(seed, "LEAD head"))


class _RandomHead:
    """x → 1024 → 2048 → C with ReLU and without biases, weights uniform in ±1/√fan_in."""

    def __init__(self, num_features: int, num_classes: int, rng: np.random.Generator) -> None:
        sizes = (num_features, *_HIDDEN, num_classes)
        self.num_classes = num_classes
        self._weights = [
            rng.uniform(-1, 1, (fan_in, fan_out)).astype(np.float32) / np.float32(fan_in**0.5)
            for fan_in, fan_out in pairwise(sizes)
        ]

    def squared_gradients(self, rows: np.ndarray) -> Float64[np.ndarray, " num_rows"]:
        """‖∂ Σ_k logit_k / ∂ weights‖² of every row: ‖x‖²‖δ₁‖² + ‖a₁‖²‖δ₂‖² + C‖a₂‖², no gradient is formed."""
        first, second, third = self._weights
        a1 = np.maximum(rows @ first, 0)
        a2 = np.maximum(a1 @ second, 0)
        d2 = third.sum(axis=1) * (a2 > 0)
        d1 = (d2 @ second.T) * (a1 > 0)
        x, h1, h2, g1, g2 = (np.einsum("ij,ij->i", v, v, dtype=np.float64) for v in (rows, a1, a2, d1, d2))
        return x * g1 + h1 * g2 + self.num_classes * h2
