from __future__ import annotations

import numpy as np
import pytest
from sklearn.covariance import ledoit_wolf

from crossgraft.scores import ScoreInputs, regularized_h_score

from .conftest import make_problem


def literal(features, labels):
    """The definition with scikit-learn's Ledoit–Wolf and a pseudo-inverse."""
    features = features - features.mean(axis=0)
    covariance, alpha = ledoit_wolf(features)
    means = np.array([features[labels == label].mean(axis=0) for label in labels])
    return np.trace(np.linalg.pinv(covariance) @ ((1 - alpha) * np.cov(means, rowvar=False))), alpha


@pytest.mark.parametrize("shape", [(90, 12), (40, 70), (30, 30), (31, 30)])
def test_equals_the_definition(shape):
    features, labels = make_problem(*shape)
    value = regularized_h_score(features=features, labels=labels)
    expected, alpha = literal(features, labels)
    assert value == pytest.approx(expected, rel=1e-10)
    assert value.parts["shrinkage"] == pytest.approx(alpha, rel=1e-10)


def test_one_feature_is_not_shrunk():
    features, labels = make_problem(30, 1, 2)
    value = regularized_h_score(features=features, labels=labels)
    between = np.var([features[labels == label].mean() for label in labels], ddof=1)
    assert value.parts["shrinkage"] == 0
    assert value == pytest.approx(between / features.var())


@pytest.mark.parametrize("num_features", [2, 5], ids=["n=d", "n<d"])
def test_two_rows_need_the_pseudo_inverse(num_features):
    features = np.random.default_rng(0).standard_normal((2, num_features))
    value = regularized_h_score(features=features, labels=[0, 1])
    assert value.parts["shrinkage"] == 0
    assert value == pytest.approx(literal(features, np.array([0, 1]))[0])


@pytest.mark.parametrize(("num_features", "seed"), [(3, 6), (3, 9), (5, 0), (16, 1)])
def test_copies_of_two_rows_leave_a_covariance_that_rounding_makes_indefinite(num_features, seed):
    two = np.random.default_rng(seed).random((2, num_features)).astype(np.float32)
    labels = np.arange(20) % 2
    value = regularized_h_score(features=two[labels], labels=labels)
    assert value == pytest.approx(literal(two[labels].astype(np.float64), labels)[0], rel=1e-4)


def test_constant_features_have_no_value():
    value = regularized_h_score(features=np.full((6, 3), 0.1), labels=[0, 1] * 3)
    assert np.isnan(value) and "constant" in value.warnings[0]


def test_label_permutations_do_not_factorise_again(monkeypatch):
    import sys

    features, labels = make_problem()
    inputs = ScoreInputs(features=features, labels=labels)
    regularized_h_score.evaluate(inputs)
    shuffled = np.random.default_rng(0).permutation(labels)
    monkeypatch.setattr(sys.modules["crossgraft.scores.regularized_h_score"], "factor_of", None)
    value = regularized_h_score.evaluate(inputs.with_labels(shuffled))
    assert value == pytest.approx(literal(features, shuffled)[0], rel=1e-10)
