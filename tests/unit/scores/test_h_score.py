from __future__ import annotations

import numpy as np
import pytest

from crossgraft.scores import h_score

from .conftest import make_problem


def literal(features, labels):
    """tr(pinv(cov X) cov(E[X | y])) as in the paper."""
    means = np.array([features[labels == label].mean(axis=0) for label in labels])
    covariance = np.atleast_2d(np.cov(features, rowvar=False))
    return np.trace(np.linalg.pinv(covariance, rcond=1e-15) @ np.atleast_2d(np.cov(means, rowvar=False)))


@pytest.mark.parametrize("shape", [(90, 12), (200, 3), (50, 1)])
def test_equals_the_definition(shape):
    features, labels = make_problem(*shape)
    assert h_score(features=features, labels=labels) == pytest.approx(literal(features, labels), rel=1e-10)


@pytest.mark.parametrize("shape", [(40, 70), (13, 12)])
def test_with_few_images_it_is_the_number_of_classes_minus_one(shape):
    features, labels = make_problem(*shape)
    value = h_score(features=features, labels=labels)
    assert value == 2.0  # exactly: rounding would rank models, and be above that of shuffled labels
    assert "whatever the features" in value.warnings[0]


def test_small_directions_survive_float32():
    """A direction that separates the classes but is a millionth of the largest one: lost in a float32 product."""
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    features = rng.standard_normal((400, 6)) * [1e4, 1, 1, 1, 1, 1e-3]
    features[:, 5] += 4e-3 * labels
    single = features.astype(np.float32)
    expected = literal(single.astype(np.float64), labels)
    assert expected > 0.7
    assert h_score(features=single, labels=labels) == pytest.approx(expected, rel=1e-4)


def test_dead_columns_are_no_directions():
    features, labels = make_problem()
    value = h_score(features=np.column_stack([features, np.zeros((90, 4))]), labels=labels)
    assert value.parts["directions"] == 12
