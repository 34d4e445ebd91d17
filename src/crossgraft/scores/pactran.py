"""PACTran: a PAC-Bayesian bound on the error of a linear head, with a Gaussian prior."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import logsumexp

from crossgraft.errors import UsageError
from crossgraft.scores._linear_maps import fit_linear_map
from crossgraft.scores._score import ScoreValue, score
from crossgraft.scores._statistics import SHARED, Statistics
from crossgraft.types import ClassIndices, Features, Labels

_MAX_ITERATIONS = 500
_CURVATURE = 0.5
"""The second derivative of the cross-entropy by one logit is p (1 − p); their matrix is at most ½."""


@score(
    title="PACTran-Gaussian",
    reference="Ding, Chen, Levinboim, Changpinyo and Soricut, PACTran: PAC-Bayesian Metrics for Estimating the Transferability "
    "of Pretrained Models to Classification Tasks, ECCV 2022 (metric with Gaussian prior)",
    invariances=("rotation", "shift"),
    cost="one eigendecomposition and up to 500 steps of O(n·min(n, d)·C): seconds to a minute",
)
def pactran(
    features: Features,
    labels: Labels,
    *,
    regularization: float = 10.0,
    prior_variance: float = 100.0,
    statistics: Statistics = SHARED,
) -> ScoreValue:
    """Minus the bound L(θ*) + ‖W*‖² / (2 σ₀² λ) + (Cd / 2λ) · log(1 + λ σ₀² tr H(W*) / (Cd)).

    L is the mean cross-entropy of the softmax head x W + b on the centred features. W has the prior N(0, σ₀²), b a flat
    one; θ* minimises the first two terms. The PAC-Bayes bound E_Q[L] + KL(Q‖prior)/λ, minimised over all Q, is
    −(1/λ) log ∫ exp(−λL) d prior. Laplace's approximation of the integral around θ* gives the third term,
    (1/2λ) log det(I + λ σ₀² H), and log det(I + M) ≤ k log(1 + tr M / k) replaces the determinant of the Cd × Cd Hessian
    by its trace, tr H = (1/n) Σ_i ‖x_i‖² Σ_k p_ik (1 − p_ik).

    Args:
        features: (n, d).
        labels: (n,).
        regularization: β in λ σ₀² = β n; the weight of the prior in θ* is 1/(2βn).
        prior_variance: σ₀² times d.
        statistics: Shared statistics of the same features and labels.

    Returns:
        At most 0; higher is better. Depends on the scale of the features. ``parts`` hold the three terms.

    Raises:
        DataError: Malformed arrays, NaN, or fewer than two classes.
        UsageError: A setting is not positive.

    Example:
        >>> y = np.repeat([0, 1], 20)
        >>> X = np.column_stack([10.0 * y, np.linspace(-1, 1, 40)])
        >>> pactran(features=X, labels=y) > pactran(features=X[:, 1:], labels=y)
        True
    """
    if not (regularization > 0 and prior_variance > 0):
        raise UsageError(f"`regularization` and `prior_variance` must be positive: {regularization}, {prior_variance}.")
    label_free = statistics.label_free
    num_samples, num_classes = statistics.num_samples, statistics.num_classes
    width = num_classes * features.shape[1]
    precision = regularization * num_samples  # λ σ₀²
    weight_of_data = precision * features.shape[1] / prior_variance  # λ
    loss = _CrossEntropy(labels)
    points = label_free.remember("all scores", label_free.all_scores)
    head = fit_linear_map(
        points, loss, num_outputs=num_classes, penalty=1 / precision, curvature=_CURVATURE, max_iterations=_MAX_ITERATIONS
    )
    posterior = loss.posterior(head.scores(points))
    trace = float(np.square(points).sum(axis=1) @ (posterior * (1 - posterior)).sum(axis=1)) / num_samples
    prior = float(np.square(head.weight).sum()) / (2 * precision)
    flatness = width / (2 * weight_of_data) * math.log1p(precision * trace / width)
    warnings = list(statistics.warnings)
    if not head.has_converged:
        warnings.append(f"The head did not converge in {_MAX_ITERATIONS} steps.")
    parts = {"cross_entropy": head.objective - prior, "prior": prior, "flatness": flatness}
    return ScoreValue(-(head.objective + flatness), parts=parts, warnings=warnings)


class _CrossEntropy:
    """Mean cross-entropy of logits (n, C), and its derivative."""

    def __init__(self, labels: ClassIndices) -> None:
        self._own = (np.arange(len(labels)), labels)

    def __call__(self, logits: np.ndarray) -> tuple[float, np.ndarray]:
        norms = np.asarray(logsumexp(logits, axis=1))
        slope = np.exp(logits - norms[:, None])
        slope[self._own] -= 1
        return float(np.mean(norms - logits[self._own])), slope / len(logits)

    def posterior(self, logits: np.ndarray) -> np.ndarray:
        """Softmax over the classes."""
        return np.exp(logits - np.asarray(logsumexp(logits, axis=1))[:, None])
