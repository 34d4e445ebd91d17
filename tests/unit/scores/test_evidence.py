from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from crossgraft.scores._evidence import maximise_evidence

from .conftest import make_problem


def literal_evidence(features, target, *, max_iterations=11, tolerance=1e-3):
    """The fixed point by its definition: one target, an SVD of X, one direction at a time."""
    num_samples, num_features = features.shape
    left, singular, _ = np.linalg.svd(features, full_matrices=True)
    sigma = np.zeros(num_features)
    sigma[: len(singular)] = singular**2
    along = np.zeros(num_features)
    along[: len(singular)] = (left.T @ target)[: len(singular)] ** 2
    outside = target @ target - along.sum()
    alpha = beta = 1.0
    for _ in range(max_iterations):
        ratio = alpha / beta
        gamma = sum(s / (s + ratio) for s in sigma)
        weights = sum(s * x / (s + ratio) ** 2 for s, x in zip(sigma, along, strict=True))
        residual = sum(x * ratio**2 / (s + ratio) ** 2 for s, x in zip(sigma, along, strict=True)) + outside
        alpha = gamma / (weights + 1e-5)
        beta = (num_samples - gamma) / (residual + 1e-5)
        total = num_features / 2 * np.log(alpha) + num_samples / 2 * np.log(beta)
        total -= 0.5 * sum(np.log(alpha + beta * s) for s in sigma)
        total -= beta * residual / 2 + alpha * weights / 2 + num_samples / 2 * np.log(2 * np.pi)
        if abs(alpha / beta - ratio) / ratio <= tolerance:
            break
    return total / num_samples, alpha, beta


def arguments(features, targets):
    sigma, vectors = np.linalg.eigh(features.T @ features)
    projections = np.square(vectors.T @ features.T @ targets)
    return np.maximum(sigma, 0), projections, np.square(targets).sum(axis=0), len(features)


def test_equals_the_literal_fixed_point_for_any_targets(problem):
    features, labels = problem
    targets = np.column_stack([*(labels == np.arange(3)[:, None]).astype(float), features[:, 0] - labels])
    result = maximise_evidence(*arguments(features, targets))
    for column, target in enumerate(targets.T):
        evidence, alpha, _ = literal_evidence(features, target)
        assert result.log_evidence[column] == pytest.approx(evidence, rel=1e-9, abs=1e-9)
        assert result.log_prior_precision[column] == pytest.approx(np.log(alpha), rel=1e-8)


def test_settled_evidence_is_the_marginal_likelihood():
    features, labels = make_problem()
    target = (labels == 0).astype(float)
    result = maximise_evidence(*arguments(features, target[:, None]), max_iterations=500, tolerance=1e-12)
    _, alpha, beta = literal_evidence(features, target, max_iterations=500, tolerance=1e-12)
    covariance = np.eye(len(target)) / beta + features @ features.T / alpha
    expected = multivariate_normal(np.zeros(len(target)), covariance).logpdf(target) / len(target)
    assert result.converged.all()
    assert result.log_evidence[0] == pytest.approx(expected, abs=1e-5)  # the guard against division by 0 is 1e-5


def test_directions_without_variance_change_nothing():
    features, labels = make_problem()
    targets = (labels[:, None] == np.arange(3)).astype(float)
    padded = np.column_stack([features, np.zeros((len(features), 30))])
    plain, dead = (maximise_evidence(*arguments(X, targets)) for X in (features, padded))
    np.testing.assert_allclose(plain.log_evidence, dead.log_evidence, rtol=1e-10)


def test_no_direction_at_all_and_perfect_fit_stay_finite():
    targets = np.array([[1.0], [0.0], [1.0], [1.0]])
    nothing = maximise_evidence(np.zeros(2), np.zeros((2, 1)), np.array([3.0]), 4)
    perfect = maximise_evidence(*arguments(targets, targets))
    assert np.isfinite(nothing.log_evidence).all()
    assert perfect.log_evidence[0] > nothing.log_evidence[0]


def test_stops_at_the_limit_and_says_so():
    features, labels = make_problem()
    result = maximise_evidence(*arguments(features, (labels == 0)[:, None].astype(float)), max_iterations=1)
    assert result.num_iterations.tolist() == [1] and not result.converged.any()
