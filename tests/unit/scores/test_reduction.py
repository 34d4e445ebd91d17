from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import ScoreInputs, _statistics, logme, regularized_h_score

from .conftest import make_problem


@pytest.fixture
def tiny_limits(monkeypatch):
    monkeypatch.setattr(_statistics, "LARGE", 30)
    monkeypatch.setattr(_statistics, "NUM_DIRECTIONS", 24)


def low_rank_problem():
    features, labels = make_problem(80, 20)
    embedding = np.linalg.qr(np.random.default_rng(0).standard_normal((60, 20)))[0]
    return features @ embedding.T, labels


@pytest.mark.usefixtures("tiny_limits")
def test_features_of_low_rank_lose_nothing():
    features, _ = low_rank_problem()
    reduced, warnings = _statistics.reduce_when_large(features)
    assert reduced.shape == (80, 24)
    np.testing.assert_allclose(reduced @ reduced.T, features @ features.T, atol=1e-9)
    assert "60 features of 80 images were reduced to 24" in warnings[0] and "1.0000" in warnings[0]


def test_small_matrices_are_left_alone():
    features = np.ones((80, 60))
    assert _statistics.reduce_when_large(features) == (features, ())


@pytest.mark.usefixtures("tiny_limits")
def test_scores_say_that_they_saw_reduced_features(monkeypatch):
    features, labels = low_rank_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    value = logme.evaluate(inputs)
    assert "randomised PCA" in value.warnings[0]
    smaller = inputs.without(np.arange(4))
    assert smaller.features.shape == (76, 60)  # scores that look at the rows still see all columns
    left_out = logme.evaluate(smaller)
    assert "randomised PCA" in regularized_h_score.evaluate(inputs).warnings[0]
    monkeypatch.setattr(_statistics, "LARGE", 10_000)
    assert value == pytest.approx(logme(features=features, labels=labels), abs=1e-9)
    assert left_out == pytest.approx(logme(features=features[4:], labels=labels[4:]), abs=1e-9)


@pytest.mark.usefixtures("tiny_limits")
def test_zero_features_have_no_energy_to_divide_by():
    reduced, warnings = _statistics.reduce_when_large(np.zeros((80, 60)))
    assert not reduced.any() and "0.0000" in warnings[0]
