"""Our EM against scikit-learn's, started from the same responsibilities."""

from __future__ import annotations

import importlib
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from crossgraft.scores.nleep import fit_mixture

_mixture = importlib.import_module("crossgraft.scores.nleep")  # the package has a score of this name


def start_from(points, start, covariance):
    """A GaussianMixture that begins with one M step from ``start``."""

    class Started(GaussianMixture):
        def _initialize_parameters(self, X, random_state, **_):
            self._initialize(X, start)

    mixture = Started(start.shape[1], covariance_type=covariance)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return mixture.fit(points)


def overlapping(num_samples, num_dimensions, num_components, seed=0):
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((num_components, num_dimensions))
    assigned = rng.integers(num_components, size=num_samples)
    points = centres[assigned] + rng.standard_normal((num_samples, num_dimensions))
    return points, np.eye(num_components)[rng.integers(num_components, size=num_samples)]


@pytest.mark.parametrize("covariance", ["full", "diag"])
@pytest.mark.parametrize("shape", [(300, 3, 4), (200, 12, 3), (400, 60, 3), (60, 40, 6)])
def test_equals_scikit_learn(shape, covariance):
    points, start = overlapping(*shape)
    ours = fit_mixture(points, start, covariance=covariance)
    theirs = start_from(points, start, covariance)
    np.testing.assert_allclose(ours.posterior, theirs.predict_proba(points), atol=1e-6)
    assert ours.log_likelihood == pytest.approx(theirs.score(points), rel=1e-9)
    assert ours.converged == theirs.converged_
    assert ours.num_iterations <= theirs.n_iter_  # fewer when EM stands still


def test_low_rank_components_are_used_and_exact(monkeypatch):
    points, start = overlapping(60, 40, 6)
    low_rank = fit_mixture(points, start, covariance="full")
    used = []
    monkeypatch.setattr(_mixture, "_low_rank", lambda *arguments: used.append(1) or _mixture._full(*arguments))
    full = fit_mixture(points, start, covariance="full")
    assert used
    np.testing.assert_allclose(low_rank.posterior, full.posterior, atol=1e-9)


def test_screening_leaves_out_nothing_that_counts(monkeypatch):
    points, start = overlapping(300, 60, 5, seed=3)
    screened = fit_mixture(points, start, covariance="full")
    monkeypatch.setattr(_mixture, "_NEGLIGIBLE", np.inf)
    everything = fit_mixture(points, start, covariance="full")
    np.testing.assert_allclose(screened.posterior, everything.posterior, atol=1e-12)


def test_screening_leaves_out_something(monkeypatch):
    points, _ = overlapping(300, 60, 5)
    points[:100] += 30.0
    start = np.eye(2)[(np.arange(300) >= 100).astype(int)]
    evaluated = []
    exact = _mixture._FullComponent.distances
    monkeypatch.setattr(_mixture._FullComponent, "distances", lambda self, rows: evaluated.append(len(rows)) or exact(self, rows))
    fit_mixture(points, start, covariance="full")
    assert max(evaluated) < 300


def test_components_without_rows_stay_empty():
    points, start = overlapping(50, 3, 2)
    padded = np.column_stack([start, np.zeros((50, 2))])
    posterior = fit_mixture(points, padded, covariance="full").posterior
    assert posterior[:, 2:].max() < 1e-9
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


def test_more_components_than_dimensions_and_identical_rows():
    points = np.repeat(np.arange(5.0)[:, None], 4, axis=0)
    posterior = fit_mixture(points, np.eye(5)[np.arange(20) // 4], covariance="full").posterior
    np.testing.assert_allclose(posterior, np.eye(5)[np.arange(20) // 4], atol=1e-12)


def test_gives_up_after_the_last_step(monkeypatch):
    monkeypatch.setattr(_mixture, "_MAX_ITERATIONS", 2)
    mixture = fit_mixture(*overlapping(300, 3, 4), covariance="full")
    assert not mixture.converged and mixture.num_iterations == 2
