from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import _evidence as _released_evidence
from crossgraft.scores._evidence import iterate_as_released

from .conftest import make_problem
from .test_evidence import arguments


def literal_fixed_point(features, target):
    """The iteration by its definition: one target, an SVD of X, one direction at a time."""
    num_samples, num_features = features.shape
    left, singular, _ = np.linalg.svd(features, full_matrices=True)
    sigma = np.zeros(num_features)
    sigma[: len(singular)] = singular**2
    along = np.zeros(num_features)
    along[: len(singular)] = (left.T @ target)[: len(singular)] ** 2
    outside = target @ target - along.sum()
    alpha = beta = 1.0
    for _ in range(11):
        ratio = alpha / beta
        gamma = sum(s / (s + ratio) for s in sigma)
        weights = sum(s * x / (s + ratio) ** 2 for s, x in zip(sigma, along, strict=True))
        residual = sum(x * ratio**2 / (s + ratio) ** 2 for s, x in zip(sigma, along, strict=True)) + outside
        alpha = gamma / (weights + 1e-5)
        beta = (num_samples - gamma) / (residual + 1e-5)
        total = num_features / 2 * np.log(alpha) + num_samples / 2 * np.log(beta)
        total -= 0.5 * sum(np.log(alpha + beta * s) for s in sigma)
        total -= beta * residual / 2 + alpha * weights / 2 + num_samples / 2 * np.log(2 * np.pi)
        if abs(alpha / beta - ratio) / ratio <= 1e-3:
            break
    return total / num_samples, alpha


def test_equals_the_literal_fixed_point_for_any_targets(problem):
    features, labels = problem
    targets = np.column_stack([*(labels == np.arange(3)[:, None]).astype(float), features[:, 0] - labels])
    result = iterate_as_released(*arguments(features, targets))
    for column, target in enumerate(targets.T):
        evidence, alpha = literal_fixed_point(features, target)
        assert result.log_evidence[column] == pytest.approx(evidence, rel=1e-9, abs=1e-9)
        assert result.log_prior_precision[column] == pytest.approx(np.log(alpha), rel=1e-8)


def test_stops_at_the_limit_and_says_so(monkeypatch):
    monkeypatch.setattr(_released_evidence, "_MAX_ITERATIONS", 1)
    features, labels = make_problem()
    result = iterate_as_released(*arguments(features, (labels == 0)[:, None].astype(float)))
    assert result.num_iterations.tolist() == [1] and not result.converged.any()


def test_no_direction_at_all_and_perfect_fit_stay_finite():
    targets = np.array([[1.0], [0.0], [1.0], [1.0]])
    nothing = iterate_as_released(np.zeros(2), np.zeros((2, 1)), np.array([3.0]), 4)
    perfect = iterate_as_released(*arguments(targets, targets))
    assert np.isfinite(nothing.log_evidence).all()
    assert perfect.log_evidence[0] > nothing.log_evidence[0]
