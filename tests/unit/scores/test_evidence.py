from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from crossgraft.scores import _evidence
from crossgraft.scores._evidence import SMALLEST_RESIDUAL, maximise_evidence

from .conftest import make_problem


def literal_evidence(features, target):
    """The highest log marginal likelihood of t ~ N(0, s (XXᵀ/τ + I)) by a search over τ; s has a closed form."""
    num_samples = len(target)
    sigma, vectors = np.linalg.eigh(features @ features.T)
    along = (vectors.T @ target) ** 2

    def value(log_ratio):
        widths = 1 + np.maximum(sigma, 0) / np.exp(log_ratio)
        variance = np.mean(along / widths)
        return -0.5 * (np.log(widths).sum() + num_samples * (np.log(2 * np.pi * variance) + 1)) / num_samples

    centre, half_width = np.log(sigma[-1]) - 10.0, 25.0
    for _ in range(12):
        places = np.linspace(centre - half_width, centre + half_width, 401)
        values = [value(place) for place in places]
        centre, half_width = places[np.argmax(values)], half_width / 20
    return max(values), np.exp(centre)


def arguments(features, targets):
    sigma, vectors = np.linalg.eigh(features.T @ features)
    projections = np.square(vectors.T @ features.T @ targets)
    sigma = np.where(sigma > 1e-12 * sigma[-1], sigma, 0.0)
    return sigma, projections, np.square(targets).sum(axis=0), len(features)


def test_equals_a_search_over_the_marginal_likelihood_for_any_targets(problem):
    features, labels = problem
    targets = np.column_stack([*(labels == np.arange(3)[:, None]).astype(float), features[:, 0] - labels])
    result = maximise_evidence(*arguments(features, targets))
    assert result.converged.all()
    for column, target in enumerate(targets.T):
        evidence, ratio = literal_evidence(features, target)
        assert result.log_evidence[column] == pytest.approx(evidence, abs=1e-9)
        if ratio > 1e-9:  # below all eigenvalues the evidence no longer changes
            assert result.ratio[column] == pytest.approx(ratio, rel=1e-3)


def test_is_the_density_of_the_target_at_its_precisions():
    features, labels = make_problem()
    target = (labels == 0).astype(float)
    result = maximise_evidence(*arguments(features, target[:, None]))
    shape = features @ features.T / result.ratio[0] + np.eye(len(target))
    noise = target @ np.linalg.solve(shape, target) / len(target)
    expected = multivariate_normal(np.zeros(len(target)), noise * shape).logpdf(target) / len(target)
    assert result.log_evidence[0] == pytest.approx(expected, abs=1e-9)


def test_finds_the_higher_of_two_local_maxima():
    """Large directions explain the target roughly, small ones the rest: each alone is a maximum of its own."""
    sigma = np.concatenate([np.full(5, 1e6), np.full(60, 1e-6)])

    def result(share):
        """``share`` of what the features explain of the target is along the small directions."""
        explained = np.concatenate([np.full(5, (1 - share) / 5), np.full(60, share / 60)])
        return maximise_evidence(sigma, (explained * sigma)[:, None], np.array([1.0 + 1e-4]), 100)

    assert result(1e-3).ratio[0] > 1e-4
    assert result(0.5).ratio[0] < 1e-4


def test_halves_where_newton_would_leave_the_cell(monkeypatch):
    features, labels = make_problem()
    given = arguments(features, (labels == 0)[:, None].astype(float))
    expected = maximise_evidence(*given)
    derivatives = _evidence._derivatives
    monkeypatch.setattr(
        _evidence, "_derivatives", lambda *a: (derivatives(*a)[0], np.ones(1))
    )  # a curvature of the wrong sign: Newton's step is refused
    halved = maximise_evidence(*given)
    assert halved.log_evidence == pytest.approx(expected.log_evidence, abs=1e-10)
    assert halved.num_iterations[0] > expected.num_iterations[0]


def test_features_that_explain_nothing_have_weights_of_0():
    result = maximise_evidence(np.ones(3), np.zeros((3, 1)), np.array([4.0]), 10)
    assert result.ratio[0] == np.inf and result.converged.all()
    assert result.log_evidence[0] == pytest.approx(-(np.log(2 * np.pi * 0.4) + 1) / 2)


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
    assert perfect.log_evidence[0] > nothing.log_evidence[0] - 1.4 * np.log(SMALLEST_RESIDUAL) / 4
