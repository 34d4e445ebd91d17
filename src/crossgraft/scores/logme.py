"""LogME: the evidence for a linear map from features to labels."""

from __future__ import annotations

from typing import Literal

import numpy as np

from crossgraft.scores._evidence import FixedPoint, MaximisedEvidence, evidence_at, iterate_as_released, maximise_evidence
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.scores._symmetric import norm
from crossgraft.types import Features, Labels

Variant = Literal["evidence", "released"]
_COARSE = 1e-4
"""Error of the evidence from which float32 is too coarse."""
_PLAUSIBLE = 0.3
"""Share of what is left of a target that directions lost in the rounding of float32 may explain."""


@score(
    title="LogME",
    reference="You, Liu, Wang and Long, LogME: Practical Assessment of Pre-trained Models for Transfer Learning, "
    "ICML 2021; released fixed point: You et al., Ranking and Tuning Pre-trained Models, JMLR 2022, algorithm 3",
    invariances=("padding", "rotation", "scale"),
    cost="one Gram matrix and its eigenvalues, size min(n, d), then O(min(n, d)²·C)",
)
def logme(features: Features, labels: Labels, *, variant: Variant = "evidence", statistics: Statistics = SHARED) -> ScoreValue:
    """Maximum log evidence of Bayesian linear regression on each one-hot column, divided by n, mean over classes.

    With prior precision α and noise precision β, n·evidence = d/2 ln α + n/2 ln β − ½ Σ_j ln(α + βσ_j) − β r²/2
    − α m²/2 − n/2 ln 2π, σ the eigenvalues of XᵀX, m² the squared norm of the weights, r² the squared residual. The
    maximum over α and β is that of the function itself, to about 1e-10: it does not depend on the scale of the features.
    A column that is fitted perfectly would have no finite evidence: 1e-10 of it always counts as residual.

    Args:
        features: (n, d); not centred, not scaled.
        labels: (n,).
        variant: ``evidence`` is the maximum of the formula. ``released`` repeats the fixed-point code that the authors
            published: 11 steps from α = β = 1 with 1e-5 added to m² and r², so that it depends on the scale of the
            features, and for n < d it sums over n directions but keeps d/2 ln α. Only for comparing with published
            tables.
        statistics: Shared statistics of the same features and labels.

    Returns:
        Any real number; higher is better. Only comparable between models on the same images. ``parts`` say how many
        iterations were needed at most, and in how many classes α/β had not settled (``released`` only).

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: Unknown variant.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([y, np.linspace(-1, 1, 40), np.ones(40)])
        >>> logme(features=X, labels=y) > logme(features=X[:, 1:], labels=y)
        True
    """
    result = _with_enough_digits(statistics, variant)
    per_class = result.log_evidence
    warnings = list(statistics.warnings)
    num_samples, num_features = statistics.num_samples, statistics.label_free.num_features
    if isinstance(result, FixedPoint) and num_samples < num_features:
        per_class = per_class + (num_features - num_samples) / (2 * num_samples) * result.log_prior_precision
        warnings.append("The released variant is no evidence for n < d: it depends on the number of features.")
    parts = {
        "lowest_class": per_class.min(),
        "highest_class": per_class.max(),
        "iterations": result.num_iterations.max(),
        "unsettled_classes": np.sum(~result.converged),
    }
    return ScoreValue(per_class.mean(), parts=parts, warnings=warnings)


def _with_enough_digits(statistics: Statistics, variant: Variant) -> MaximisedEvidence | FixedPoint:
    """The evidence, in float64 if float32 is too coarse for it, or was for all of the images that these are a part of."""
    origin, key = statistics.label_free.origin, ("LogME in float64", variant)
    if origin is None or not origin.parent.recall(key, bool):
        result = _evidence(statistics, variant)
        if not _is_coarse(statistics, result):
            return result
        statistics.label_free.remember(key, lambda: True)
    return _evidence(statistics.in_float64, variant)


def _evidence(statistics: Statistics, variant: Variant) -> MaximisedEvidence | FixedPoint:
    compute = maximise_evidence if variant == "evidence" else iterate_as_released
    return compute(*_arguments(statistics))


def _arguments(statistics: Statistics) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Eigenvalues, those that are rounding as 0, projections, ‖t‖² of each class, and n."""
    spectrum = statistics.label_free.gram_spectrum
    values = np.where(spectrum.values > spectrum.smallest, spectrum.values, 0.0)
    return values, _projections(statistics), statistics.class_counts, statistics.num_samples


def _is_coarse(statistics: Statistics, result: MaximisedEvidence | FixedPoint) -> bool:
    """Whether rounding of float32 products is seen in the evidence, ½ Σ ln(σ + α/β) / n and what else has σ + α/β."""
    label_free = statistics.label_free
    if label_free.has_double_products:
        return False
    rounding = norm(label_free.moments.product) * float(np.finfo(np.float32).eps)
    if rounding == 0:
        return False
    spectrum = np.maximum(label_free.gram_spectrum.values, 0.0)
    shrunk = np.maximum(spectrum + result.ratio.min(), np.finfo(np.float64).tiny)
    if rounding * np.sum(1 / shrunk) > _COARSE * statistics.num_samples:
        return True
    if not isinstance(result, MaximisedEvidence):
        return False
    return bool(result.overshoot.max() > 2 * _COARSE) or _may_hide_a_maximum(statistics, result, spectrum, rounding)


def _may_hide_a_maximum(statistics: Statistics, result: MaximisedEvidence, spectrum: np.ndarray, rounding: float) -> bool:
    """Whether directions that are lost in the rounding of float32 products could make a higher maximum than the one found.

    It would lie at α/β below the rounding, where the directions that are not lost give a lower evidence: 1 − exp(−2 · deficit) is
    what the lost ones would have to explain of the rest.
    """
    if spectrum.min() >= rounding:
        return False
    deficit = result.log_evidence - evidence_at(*_arguments(statistics), rounding)
    return bool((1 - np.exp(-2 * deficit)).min() < _PLAUSIBLE)


def _projections(statistics: Statistics) -> np.ndarray:
    """(vᵀ Xᵀ t_c)² for each eigenvector v of XᵀX and class c; XᵀT of one-hot columns is the matrix of class sums."""
    spectrum = statistics.label_free.gram_spectrum
    if statistics.label_free.is_dual:  # Xv = √σ q for the eigenvector q of XXᵀ
        return np.maximum(spectrum.values, 0.0)[:, None] * np.square(spectrum.along(statistics.one_hot))
    class_means = statistics.mean_offsets + statistics.label_free.mean
    return np.square(spectrum.along((class_means * statistics.class_counts[:, None]).T))
